import type { NeedMore } from "../../../core/decision/decision.ts";
import type { Facts } from "../../../core/decision/need.ts";
import { at, type Json, type JsonObject, listAt } from "../../../core/json.ts";
import { labelsOf } from "../../../core/kubernetes/object.ts";
import { matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import { liveObject, type ReconcileResult } from "../../../core/module/reconciler.ts";
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

/** Whether the node's taint deviates from mastersSchedulable. */
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
  const live = liveObject(of, facts);
  if (live === undefined) return { writes: [] };
  if ("need" in live) return live;
  const { object: node, resourceVersion } = live;
  if (!needsTaint(node, group, mastersSchedulable, view)) return { writes: [] };
  const key = taintKey(view);
  const stored = listAt(node, "spec", "taints");
  const taints = mastersSchedulable
    ? stored.filter((one) => !isTaint(key)(one))
    : [...stored, { key, effect: EFFECT }];
  return { writes: [{ patch: [{ op: "add", path: "/spec/taints", value: taints }], of, resourceVersion }] };
}

function isTaint(key: string): (taint: Json) => boolean {
  return (taint) => at(taint, "key") === key && at(taint, "effect") === EFFECT;
}
