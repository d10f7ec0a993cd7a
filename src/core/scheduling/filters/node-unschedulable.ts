import { at, type JsonObject, listAt } from "../../json.ts";
import { tolerates } from "../../kubernetes/tolerations.ts";
import { type Filter, SKIPS, unresolvable } from "../filter.ts";
import type { PreparedWorld } from "../prepared-world.ts";

const CORDONED = unresolvable("NodeUnschedulable", "node(s) were unschedulable");
const TAINT = { key: "node.kubernetes.io/unschedulable", effect: "NoSchedule" };

/** A cordoned node accepts only pods that tolerate the taint of cordoned nodes, whether or not the taint is present. */
export const NODE_UNSCHEDULABLE: Filter = {
  name: "NodeUnschedulable",
  forPod: (pod: JsonObject, { nodes }: PreparedWorld) => {
    if (listAt(pod, "spec", "tolerations").some((toleration) => tolerates(toleration, TAINT))) return SKIPS;
    return {
      kind: "filters",
      judge: (node) => (at(nodes.objects[node], "spec", "unschedulable") === true ? CORDONED : undefined),
    };
  },
};
