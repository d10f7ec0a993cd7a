import type { WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Rule } from "../../../core/module/hook.ts";

/** A rule for each API group of these kinds. */
export function workloadRules(
  workloads: readonly WorkloadKind[],
  operations: Rule["operations"],
): readonly Rule[] {
  const groups = Map.groupBy(workloads, ({ group }) => group);
  return [...groups].map(([group, kinds]) => ({
    groups: [group],
    versions: [...new Set(kinds.map(({ version }) => version))],
    resources: [...new Set(kinds.map(({ resource }) => resource))],
    operations,
    scope: "Namespaced",
  }));
}
