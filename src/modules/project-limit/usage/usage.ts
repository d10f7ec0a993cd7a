import type { View } from "../../../core/view/view.ts";
import { type Project, requesterOf, toProject, usageOf } from "../decision/count.ts";
import { limitOf, USERS } from "../decision/limit.ts";
import { describeSubject, type Subject, subjectOf } from "../decision/subject.ts";
import { isExemptUser } from "../policy/exempt.ts";
import type { Limits } from "../policy/policy.ts";

export const STATES = ["below", "last", "full", "over"] as const;
export type State = (typeof STATES)[number];

/** What one subject has, and may have. */
export interface SubjectUsage {
  readonly subject: string;
  readonly count: number;
  readonly names: readonly string[];
  /** `unlimited`; `unknown` where it depends on groups, or on a User object that does not exist. */
  readonly max: number | "unlimited" | "unknown";
  /** Where in the spec the maximum is. */
  readonly rule?: string;
  /** Of those with a maximum. */
  readonly state?: State;
}

/** Every subject that has a project, by name. */
export function subjectUsages(view: View, limits: Limits | undefined): SubjectUsage[] {
  const subjects = new Map<string, { subject: Subject; username: string; projects: Project[] }>();
  for (const namespace of view.list("namespaces")) {
    const username = requesterOf(namespace) ?? "";
    if (username === "") continue;
    const subject = subjectOf(username, limits?.serviceAccountsPer ?? "Account");
    const key = JSON.stringify(subject);
    const known = subjects.get(key) ?? { subject, username, projects: [] };
    subjects.set(key, known);
    known.projects.push(toProject(namespace));
  }
  return [...subjects.values()]
    .map(({ subject, username, projects }) => {
      const usage = usageOf(projects);
      return {
        subject: describeSubject(subject),
        ...usage,
        ...(limits === undefined
          ? { max: "unlimited" as const }
          : maximumOf(view, limits, username, usage.count)),
      };
    })
    .sort((a, b) => (a.subject < b.subject ? -1 : a.subject > b.subject ? 1 : 0));
}

function maximumOf(
  view: View,
  limits: Limits,
  username: string,
  count: number,
): Pick<SubjectUsage, "max" | "rule" | "state"> {
  if (isExemptUser(limits, username)) return { max: "unlimited" };
  const user = view.get(USERS, "", username);
  const fact =
    user !== undefined
      ? { found: user, complete: true }
      : { absent: view.served(USERS) ? ("NotFound" as const) : ("NotServed" as const) };
  const limit = limitOf(limits, { username, groups: undefined }, fact);
  if ("unlimited" in limit) return { max: dependsOnGroups(limits, username) ? "unknown" : "unlimited" };
  if (!("max" in limit)) return { max: "unknown" };
  const { max, rule } = limit;
  const passed = limits.rules.slice(0, Number(/^limits\[(\d+)\]$/.exec(rule)?.[1] ?? 0));
  if (passed.some(({ groups }) => groups !== undefined)) return { max: "unknown" };
  return { max, rule, state: stateOf(count, max) };
}

/** Groups are known from requests alone. */
function dependsOnGroups({ rules }: Limits, username: string): boolean {
  return rules.some(
    ({ groups, users }) => groups !== undefined && (users === undefined || users.has(username)),
  );
}

function stateOf(count: number, max: number): State {
  if (count > max) return "over";
  if (count === max) return "full";
  return count === max - 1 ? "last" : "below";
}

/** How many subjects are in each state. */
export function statesOf(usages: readonly SubjectUsage[]): Record<State, number> {
  const counts = { below: 0, last: 0, full: 0, over: 0 };
  for (const { state } of usages) if (state !== undefined) counts[state] += 1;
  return counts;
}
