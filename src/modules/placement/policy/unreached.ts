import { exemptNamespaces, type Installation } from "../../../core/installation/installation.ts";
import { stringAt } from "../../../core/json.ts";
import { labelsOf, NAMESPACE_NAME } from "../../../core/kubernetes/object.ts";
import { matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import { isPod } from "../../../core/kubernetes/workloads.ts";
import { idle, PROBLEM, type Problem } from "../../../core/policy/problem.ts";
import type { View } from "../../../core/view/view.ts";
import { placedWorkloads } from "../settings.ts";
import type { PlacementPolicy } from "./policy.ts";

export interface Unreached {
  readonly field: string;
  /** CamelCase, for machines. */
  readonly reason: string;
  readonly message: string;
}

/** Why a valid policy reaches no object: none of its namespace or its kinds is placed here. */
export function unreachedBecause(
  { namespaceSelector, targets, ref }: PlacementPolicy,
  view: View,
  installation: Installation | undefined,
): Unreached | undefined {
  const exempt = new Set(installation === undefined ? [] : exemptNamespaces(installation));
  if (ref.namespace !== undefined && exempt.has(ref.namespace))
    return {
      field: "namespace",
      reason: "ExemptNamespace",
      message: `usher changes nothing in namespace ${ref.namespace}: list it in spec.openNamespaces of the configuration`,
    };
  const placed = installation === undefined ? [] : placedWorkloads(installation);
  const isReached = placed.some((workload) => targets !== (isPod(workload) ? "Templates" : "Pods"));
  if (installation !== undefined && !isReached)
    return {
      field: "targets",
      reason: "NoKind",
      message: `spec.modules.placement.resources of the configuration has no kind for targets: ${targets}`,
    };
  if (ref.namespace !== undefined || namespaceSelector === undefined || !view.served("namespaces"))
    return undefined;
  for (const namespace of view.list("namespaces")) {
    const name = stringAt(namespace, "metadata", "name") ?? "";
    if (exempt.has(name)) continue;
    if (matches(namespaceSelector, { ...labelsOf(namespace), [NAMESPACE_NAME]: name })) return undefined;
  }
  return {
    field: "namespaceSelector",
    reason: "NoNamespace",
    message: "namespaceSelector matches no namespace that usher places pods in",
  };
}

/** The same as a warning. A namespace may be created later, so it stays one. */
export function unreachedWarnings(
  policy: PlacementPolicy,
  view: View,
  installation: Installation | undefined,
): Problem[] {
  const found = unreachedBecause(policy, view, installation);
  if (found === undefined) return [];
  const path = found.field === "namespace" ? ["metadata", "namespace"] : ["spec", found.field];
  return [idle(PROBLEM.noEffect, path, `the policy has no effect: ${found.message}`)];
}
