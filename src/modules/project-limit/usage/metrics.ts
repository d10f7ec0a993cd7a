import type { Figure, Metric } from "../../../core/module/metric.ts";
import { STATES, type SubjectUsage, statesOf } from "./subject-usage.ts";

/** User names are unbounded; those that need attention are few. */
export const MOST_NAMED = 100;

const USERS_BY_STATE = "usher_project_limit_users";
const PROJECTS_OF_USER = "usher_project_limit_user_projects";

export const USAGE_METRICS: readonly Metric[] = [
  {
    name: USERS_BY_STATE,
    type: "gauge",
    help: "Limited users and service accounts with at least one project, by state: below, last (one place is free), full, over.",
    labels: [{ name: "state", values: STATES }],
  },
  {
    name: PROJECTS_OF_USER,
    type: "gauge",
    help: "Projects of users at or over their limit, those furthest over it first; at most 100 users.",
    labels: [{ name: "user", limit: MOST_NAMED }],
  },
];

export function usageFigures(usages: readonly SubjectUsage[]): Figure[] {
  const states = statesOf(usages);
  const named = usages
    .flatMap(({ subject, count, max }) =>
      typeof max === "number" && count >= max ? [{ subject, count, over: count - max }] : [],
    )
    .sort((a, b) => b.over - a.over)
    .slice(0, MOST_NAMED);
  return [
    ...STATES.map((state) => ({ metric: USERS_BY_STATE, labels: { state }, value: states[state] })),
    ...named.map(({ subject, count }) => ({
      metric: PROJECTS_OF_USER,
      labels: { user: subject },
      value: count,
    })),
  ];
}
