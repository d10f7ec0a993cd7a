import { type JsonObject, listAt } from "../../json.ts";
import type { Taint } from "../../kubernetes/taints.ts";
import { type Filter, type FilterOutcome, unknown, unresolvable } from "../filter.ts";
import { GATED_TOLERATION, type Tolerance, toleranceOf, untoleratedTaint } from "../node-matchers.ts";
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
    if (minor < COUNTED_SINCE) {
      const taintOf = untoleratedTaint(listAt(pod, "spec", "tolerations"), nodes);
      return { kind: "filters", judge: (node) => namedOutcome(taintOf(node)) };
    }
    const tolerance = toleranceOf(listAt(pod, "spec", "tolerations"), nodes, minor);
    return { kind: "filters", judge: (node) => OUTCOMES[tolerance(node)] };
  },
};
