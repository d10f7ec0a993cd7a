import { type JsonObject, listAt } from "../../json.ts";
import { toleratesAll } from "../../kubernetes/tolerations.ts";
import { type Filter, unresolvable } from "../filter.ts";
import type { PreparedWorld } from "../prepared-world.ts";

const UNTOLERATED = unresolvable("TaintToleration", "node(s) had untolerated taint(s)");

export const TAINT_TOLERATION: Filter = {
  name: "TaintToleration",
  forPod: (pod: JsonObject, { nodes }: PreparedWorld) => {
    const tolerations = listAt(pod, "spec", "tolerations");
    const { classes, values } = nodes.taints;
    const outcomes = values.map((taints) => (toleratesAll(tolerations, taints) ? undefined : UNTOLERATED));
    return { kind: "filters", judge: (node) => outcomes[classes[node] ?? 0] };
  },
};
