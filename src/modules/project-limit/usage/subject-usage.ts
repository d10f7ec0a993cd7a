import { stringAt } from "../../../core/json.ts";
import { serviceAccountOf } from "../../../core/kubernetes/principals.ts";
import type { Assembly } from "../../../core/module/assembly.ts";
import type { Standing } from "../../../core/module/standing.ts";
import { byText } from "../../../core/order.ts";
import type { View } from "../../../core/view/view.ts";
import { limitsIn } from "../kinds.ts";
import { USAGES } from "../ledger/project-usage.ts";
import { isExemptUser, isUserName, limitOf, USERS } from "../policy/limit.ts";
import type { ProjectLimits } from "../policy/policy.ts";
import { type Project, requesterOf, toProject, usageOf } from "../projects.ts";
import { describeSubject, type LimitSubject, ledgerName, subjectOf } from "../subject.ts";
import { unenforcedBecause } from "./enforced.ts";

export const STATES = ["below", "last", "full", "over"] as const;
type State = (typeof STATES)[number];

/** The usage and limit of one subject. */
export interface SubjectUsage {
  readonly subject: string;
  readonly count: number;
  readonly names: readonly string[];
  /** `unlimited`; `unknown` if it depends on groups, or on a User object that does not exist. */
  readonly max: number | "unlimited" | "unknown";
  /** The path of the maximum in the spec. */
  readonly rule?: string;
  /** Of those with a maximum. */
  readonly state?: State;
}

interface Holder {
  readonly subject: LimitSubject;
  /** Of one of its projects. */
  readonly username: string;
}

/** Every subject that has a project, by name. */
export function subjectUsages(view: View, limits: ProjectLimits | undefined): SubjectUsage[] {
  const subjects = new Map<string, Holder & { projects: Project[] }>();
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
    .map(({ projects, ...holder }) => {
      const usage = usageOf(projects);
      return {
        subject: describeSubject(holder.subject),
        ...usage,
        ...(limits === undefined
          ? { max: "unlimited" as const }
          : maximumOf(view, limits, holder, usage.count)),
      };
    })
    .sort(byText(({ subject }) => subject));
}

type Maximum = Pick<SubjectUsage, "max" | "rule" | "state">;

function maximumOf(view: View, limits: ProjectLimits, { subject, username }: Holder, count: number): Maximum {
  if (isExemptUser(limits, username)) return { max: "unlimited" };
  const user = view.get(USERS, "", username);
  const fact =
    user !== undefined
      ? { found: user, complete: true }
      : { absent: view.served(USERS) ? ("NotFound" as const) : ("NotServed" as const) };
  const limit = limitOf(limits, { username, groups: [EVERYONE] }, fact);
  const rule = "max" in limit ? limit.rule : undefined;
  if (dependsOnGroups(limits, username, rule)) return recordedMaximum(view, limits, subject, count);
  if ("max" in limit) return { ...limit, state: stateOf(count, limit.max) };
  return { max: "unlimited" in limit ? "unlimited" : "unknown" };
}

/** By the rule that admitted the last creation, if it is in the ledger. */
function recordedMaximum(
  view: View,
  { rules }: ProjectLimits,
  subject: LimitSubject,
  count: number,
): Maximum {
  const rule = stringAt(view.get(USAGES, "", ledgerName(subject)), "spec", "rule");
  const max = rule === undefined ? undefined : rules[indexOf(rule)]?.maxProjects;
  return rule === undefined || max === undefined
    ? { max: "unknown" }
    : { max, rule, state: stateOf(count, max) };
}

function indexOf(rule: string): number {
  return Number(/^limits\[(\d+)\]$/.exec(rule)?.[1] ?? Number.NaN);
}

/** The group of every user who has a project; other groups are known only from requests. */
const EVERYONE = "system:authenticated";

/** An earlier rule might match by groups that are not known. */
function dependsOnGroups(limits: ProjectLimits, username: string, rule: string | undefined): boolean {
  const { rules } = limits;
  if (!isUserName(username, limits) || serviceAccountOf(username) !== undefined) return false;
  const earlier = rule === undefined ? rules : rules.slice(0, indexOf(rule));
  return earlier.some(
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

/** The users that have more projects than they may. */
export function standing({ view }: Assembly): Standing[] {
  const limits = limitsIn(view);
  if (limits === undefined || unenforcedBecause(limits, view) !== undefined) return [];
  return subjectUsages(view, limits)
    .filter(({ state }) => state === "over")
    .map(({ subject, count, max, rule = "" }) => ({
      object: { kind: "User", name: subject },
      changes: [],
      holds: [],
      violation: `${count} projects, at most ${max} (${rule})`,
    }));
}
