import { type NeedMore, need } from "../../../core/evaluate/decision.ts";
import { type Facts, failureOf, type Need } from "../../../core/evaluate/need.ts";
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { labelsOf } from "../../../core/kubernetes/object.ts";
import { matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { ReconcileResult } from "../../../core/module/reconciler.ts";
import type { View } from "../../../core/view/view.ts";
import type { Group } from "../groups/group.ts";
import { OPENSHIFT_RESOURCE } from "../settings.ts";

const EFFECT = "NoSchedule";

/** OpenShift's machine-config-controller, which sets the taint by the same field, uses the older key. */
export function taintKey(view: View): string {
  return view.served(OPENSHIFT_RESOURCE)
    ? "node-role.kubernetes.io/master"
    : "node-role.kubernetes.io/control-plane";
}

/** Whether the node's taint is not what mastersSchedulable asks for. */
export function needsTaint(node: JsonObject, group: Group, mastersSchedulable: boolean, view: View): boolean {
  if (!matches(group.labelSelector, labelsOf(node))) return false;
  return listAt(node, "spec", "taints").some(isTaint(taintKey(view))) === mastersSchedulable;
}

/** Sets the taint of a control-plane node, or removes it; other taints stay. */
export function reconcileTaint(
  name: string,
  group: Group,
  mastersSchedulable: boolean,
  { view, facts }: { readonly view: View; readonly facts: Facts },
): ReconcileResult<never> | NeedMore {
  const of = { resource: "nodes", name };
  const live: Need = { get: of, live: true };
  const fact = facts.of(live);
  if (fact === undefined) return need(live);
  const failure = failureOf(fact);
  if (failure !== undefined) throw new Error(failure);
  if (!("found" in fact) || !isObject(fact.found)) return { writes: [] };
  const node = fact.found;
  if (!needsTaint(node, group, mastersSchedulable, view)) return { writes: [] };
  const key = taintKey(view);
  const stored = listAt(node, "spec", "taints");
  const taints = mastersSchedulable
    ? stored.filter((one) => !isTaint(key)(one))
    : [...stored, { key, effect: EFFECT }];
  const resourceVersion = stringAt(node, "metadata", "resourceVersion") ?? "";
  return { writes: [{ patch: [{ op: "add", path: "/spec/taints", value: taints }], of, resourceVersion }] };
}

function isTaint(key: string): (taint: Json) => boolean {
  return (taint) => at(taint, "key") === key && at(taint, "effect") === EFFECT;
}
