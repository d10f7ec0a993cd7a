import type { Figure, Metric } from "../../core/module/metric.ts";

const STATES = ["current", "stale", "orphaned", "missing"] as const;

export const METRICS: readonly Metric[] = [
  {
    name: "usher_workloads",
    type: "gauge",
    help: "Stored workloads by how they compare with current policies, deleted ones included: current, stale, orphaned, missing. Only the leader scans.",
    labels: [
      { name: "module", values: ["placement"] },
      { name: "state", values: STATES },
    ],
  },
];

export function workloadFigures(
  workloads: Readonly<Partial<Record<(typeof STATES)[number], number>>>,
): Figure[] {
  return STATES.flatMap((state) => {
    const value = workloads[state];
    const labels = { module: "placement", state };
    return value === undefined ? [] : [{ metric: "usher_workloads", labels, value }];
  });
}
