import { type JsonObject, listAt } from "../../json.ts";
import type { Taint } from "../../kubernetes/taints.ts";
import { type Filter, type FilterOutcome, unknown, unresolvable } from "../filter.ts";
import {
  byTaints,
  firstUntolerated,
  GATED_TOLERATION,
  type Tolerance,
  toleranceOf,
} from "../node-matchers.ts";
import type { PreparedWorld } from "../prepared-world.ts";

const OUTCOMES: Readonly<Record<Tolerance, FilterOutcome>> = {
  tolerated: undefined,
  untolerated: unresolvable("TaintToleration", "node(s) had untolerated taint(s)"),
  gated: unknown("TaintToleration", GATED_TOLERATION),
};

/** The version since which the reason does not name the taint. */
const COUNTED_SINCE = 34;

function namedOutcome(taint: Taint | undefined): FilterOutcome {
  if (taint === undefined) return undefined;
  const { key, value } = taint;
  return unresolvable("TaintToleration", `node(s) had untolerated taint {${key}: ${value}}`);
}

export const TAINT_TOLERATION: Filter = {
  name: "TaintToleration",
  forPod: (pod: JsonObject, { nodes, minor }: PreparedWorld) => {
    const tolerations = listAt(pod, "spec", "tolerations");
    if (minor < COUNTED_SINCE) {
      const judge = byTaints(nodes, (taints) => namedOutcome(firstUntolerated(tolerations, taints)));
      return { kind: "filters", judge };
    }
    const tolerance = toleranceOf(tolerations, nodes, minor);
    return { kind: "filters", judge: (node) => OUTCOMES[tolerance(node)] };
  },
};
