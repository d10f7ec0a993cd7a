import { nameOf } from "../../core/kubernetes/object.ts";
import type { DashboardParts, DashboardTable, TableRow } from "../../core/module/dashboard.ts";
import type { Tone } from "../../core/module/shown.ts";
import { limitsIn } from "./kinds.ts";
import { entriesIn, subjectIn, USAGES } from "./ledger/project-usage.ts";
import type { ProjectLimits } from "./policy/policy.ts";
import { describeSubject } from "./subject.ts";
import { unenforcedBecause } from "./usage/enforced.ts";
import { type SubjectUsage, statesOf, subjectUsages } from "./usage/subject-usage.ts";

type State = NonNullable<SubjectUsage["state"]>;

const TONES: Readonly<Record<State, Tone>> = { below: "good", last: "warning", full: "bad", over: "bad" };
const WORDS: Readonly<Record<State, string>> = {
  below: "has room",
  last: "one place left",
  full: "at the limit",
  over: "over the limit",
};

const table: DashboardTable = {
  name: "projects",
  title: "Projects",
  summary: "Users with their projects and limit, those nearest to it first, and reservations under way.",
  columns: [
    { title: "User", align: "start" },
    { title: "Projects", align: "start" },
    { title: "Limit", align: "end" },
    { title: "State", align: "start", groups: true },
    { title: "Reserved", align: "end" },
    { title: "Rule", align: "start" },
  ],
  empty:
    "No namespace has the annotation openshift.io/requester, so no user has a project. usher project-limit backfill sets it for projects that exist.",
  rows: ({ view }) => {
    const limits = limitsIn(view);
    const usages = subjectUsages(view, limits);
    const states = statesOf(usages);
    const reserved = new Map<string, string[]>();
    const names = new Set([...view.list("namespaces")].map(nameOf));
    for (const ledger of view.list(USAGES)) {
      // A project that exists has its place already.
      const open = entriesIn(ledger).filter(({ name }) => !names.has(name));
      if (open.length > 0)
        reserved.set(
          describeSubject(subjectIn(ledger)),
          open.map(({ name }) => name || "a name that is still generated"),
        );
    }
    const known = new Set(usages.map(({ subject }) => subject));
    const waiting: SubjectUsage[] = [...reserved.keys()]
      .filter((subject) => !known.has(subject))
      .map((subject) => ({ subject, count: 0, names: [], max: "unknown" }));
    const idle =
      limits === undefined
        ? "there is no ProjectRequestLimit named cluster: no user is limited"
        : unenforcedBecause(limits, view);
    return {
      figures: [
        { title: "users with projects", value: String(usages.length), tone: "none" },
        { title: "at the limit", value: String(states.full), tone: states.full > 0 ? "bad" : "good" },
        { title: "over the limit", value: String(states.over), tone: states.over > 0 ? "bad" : "good" },
        {
          title: "reservations under way",
          value: String([...reserved.values()].flat().length),
          tone: "none",
        },
      ],
      ...(idle === undefined ? {} : { note: idle }),
      rows: [...usages, ...waiting]
        .map((usage) => rowOf(usage, reserved.get(usage.subject) ?? []))
        .sort((a, b) => b.near - a.near || (a.row.key < b.row.key ? -1 : 1))
        .map(({ row }) => row),
    };
  },
};

function rowOf(
  { subject, count, max, state, rule, names }: SubjectUsage,
  reserved: readonly string[],
): { readonly near: number; readonly row: TableRow } {
  const limited = typeof max === "number";
  const tone = state === undefined ? "none" : TONES[state];
  return {
    near: limited ? count / Math.max(1, max) : -1,
    row: {
      key: subject,
      tone,
      cells: [
        { text: subject },
        { text: String(count), value: count, ...(limited ? { meter: { value: count, max } } : {}) },
        { text: String(max), ...(limited ? { value: max } : {}) },
        { text: state === undefined ? "-" : WORDS[state], tone },
        { text: String(reserved.length), value: reserved.length },
        { text: rule ?? "-" },
      ],
      details: [
        {
          title: "Projects",
          tone: "none",
          lines: [...names],
          fixes: [],
        },
        ...(reserved.length === 0
          ? []
          : [
              { title: "Reserved, not created yet", tone: "plain" as const, lines: [...reserved], fixes: [] },
            ]),
      ],
    },
  };
}

export const dashboard: DashboardParts = {
  tables: [table],
  summarize: ({ view }) => {
    const usages = subjectUsages(view, limitsIn(view));
    return ({ policy }) => {
      const limits = policy as ProjectLimits | undefined;
      if (limits === undefined)
        return { selects: ["none: only the one named cluster counts"], changes: [], refuses: [] };
      const of = (rule: ProjectLimits["rules"][number]) =>
        [
          ...[...rule.selector].map(([key, value]) => `${key}=${value}`),
          ...(rule.groups === undefined ? [] : [`groups ${[...rule.groups].join(", ")}`]),
          ...(rule.users === undefined ? [] : [`users ${[...rule.users].join(", ")}`]),
        ].join("; ") || "all other users";
      return {
        selects: limits.rules.map((rule, i) => `limits[${i}]: ${of(rule)}`),
        changes: [],
        refuses: limits.rules.map((rule, i) =>
          rule.maxProjects === undefined
            ? `limits[${i}]: nothing`
            : `limits[${i}]: a project beyond ${rule.maxProjects}`,
        ),
        objects: [{ count: usages.length, noun: "users" }],
      };
    };
  },
};
