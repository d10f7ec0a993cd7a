import { type JsonObject, listAt } from "../../json.ts";
import { type Filter, type FilterOutcome, unknown, unresolvable } from "../filter.ts";
import { GATED_TOLERATION, type Tolerance, toleranceOf } from "../node-matchers.ts";
import type { PreparedWorld } from "../prepared-world.ts";

const OUTCOMES: Readonly<Record<Tolerance, FilterOutcome>> = {
  tolerated: undefined,
  untolerated: unresolvable("TaintToleration", "node(s) had untolerated taint(s)"),
  gated: unknown("TaintToleration", GATED_TOLERATION),
};

export const TAINT_TOLERATION: Filter = {
  name: "TaintToleration",
  forPod: (pod: JsonObject, { nodes, minor }: PreparedWorld) => {
    const tolerance = toleranceOf(listAt(pod, "spec", "tolerations"), nodes, minor);
    return { kind: "filters", judge: (node) => OUTCOMES[tolerance(node)] };
  },
};
