import { poolOf } from "../core/foresight/node-reach.ts";
import { at, isObject, type JsonObject, listAt, own, stringAt } from "../core/json.ts";
import { labelsOf } from "../core/kubernetes/object.ts";
import type { Grouping, NodeGroup } from "../core/module/dashboard.ts";

/** Ways to group nodes that need no module. */
export const GROUPINGS: readonly Grouping[] = [
  grouping("pool", "Pool", (node) => poolOf(node)),
  grouping("zone", "Zone", (node) => labelOf(node, "topology.kubernetes.io/zone")),
  grouping("os", "Operating system", osOf),
];

function grouping(name: string, title: string, of: (node: JsonObject) => string | undefined): Grouping {
  const none: NodeGroup = { key: "", title: `no ${title.toLowerCase()}` };
  return {
    name,
    title,
    prepare: () => (node) => {
      const value = of(node);
      return value === undefined ? none : { key: value, title: value };
    },
  };
}

function labelOf(node: JsonObject, key: string): string | undefined {
  const value = own(labelsOf(node), key);
  return typeof value === "string" && value !== "" ? value : undefined;
}

function osOf(node: JsonObject): string | undefined {
  return labelOf(node, "kubernetes.io/os") ?? stringAt(node, "status", "nodeInfo", "operatingSystem");
}

const CONTROL_PLANE = ["node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master"];

/** Tags of a node: the facts that matter at a glance. */
export function tagsOf(node: JsonObject): string[] {
  const labels = labelsOf(node);
  const isControlPlane = CONTROL_PLANE.some((key) => own(labels, key) !== undefined);
  const ready = listAt(node, "status", "conditions").find((one) => stringAt(one, "type") === "Ready");
  const isTainted = taintsOf(node).some(
    ({ key, effect }) =>
      effect !== "PreferNoSchedule" && !CONTROL_PLANE.includes(key) && !key.startsWith("node.kubernetes.io/"),
  );
  return [
    ...(isControlPlane ? ["control plane"] : []),
    ...(osOf(node) === "windows" ? ["windows"] : []),
    ...(ready !== undefined && stringAt(ready, "status") !== "True" ? ["not ready"] : []),
    ...(at(node, "spec", "unschedulable") === true ? ["cordoned"] : []),
    ...(isTainted ? ["tainted"] : []),
  ];
}

interface Taint {
  readonly key: string;
  readonly value: string;
  readonly effect: string;
}

export function taintsOf(node: JsonObject): Taint[] {
  return listAt(node, "spec", "taints")
    .filter(isObject)
    .map((taint) => ({
      key: stringAt(taint, "key") ?? "",
      value: stringAt(taint, "value") ?? "",
      effect: stringAt(taint, "effect") ?? "",
    }));
}
