// One line on a pod, as kube-scheduler writes it into the condition PodScheduled.
import type { Failure } from "./filter.ts";
import type { NodeGroup } from "./scheduling.ts";

/**
 * Counts by reason, sorted as text, as the scheduler does; a node with two reasons counts for both. A pod that is rejected before any
 * node was looked at has that reason alone.
 */
export function summaryOf(groups: readonly NodeGroup[], rejection: Failure | undefined): string {
  let [all, fits] = [0, 0];
  const counts = new Map<string, number>();
  const add = (reason: string, count: number): unknown =>
    counts.set(reason, (counts.get(reason) ?? 0) + count);
  for (const { verdict, nodes } of groups) {
    all += nodes.length;
    if (verdict.kind === "fits") fits += nodes.length;
    else if (verdict.kind === "unknown") add(`unknown (${verdict.reason})`, nodes.length);
    else for (const reason of verdict.reasons) add(reason, nodes.length);
  }
  const available = `${fits}/${all} nodes are available`;
  if (rejection !== undefined) return `${available}: ${rejection.reasons.join(", ")}.`;
  if (counts.size === 0) return `${available}.`;
  const reasons = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
  return `${available}: ${reasons.join(", ")}.`;
}
