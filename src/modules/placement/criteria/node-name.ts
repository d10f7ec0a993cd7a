import type { Json, JsonObject } from "../../../core/json.ts";
import { isGatedSpec } from "../../../core/kubernetes/pod-state.ts";
import { pointer } from "../../../core/path.ts";
import { type Problem, warningProblem } from "../../../core/policy/problem.ts";
import { provenanceOf } from "../../../core/provenance/annotation.ts";
import { fieldOf } from "./cel.ts";
import { type Criteria, IMMUTABLE, type Limits, wantedOf } from "./criterion.ts";
import { nameCriterion } from "./name-criterion.ts";
import { schedulingGates } from "./scheduling-gates.ts";

/**
 * nodeName
 *
 * Field:    spec.nodeName
 * Merge:    set where the pod has none; otherwise kept (USHER-P10). Skipped where the Node does not exist (USHER-P20), and beside
 *           scheduling gates, which the API server refuses together, and in a DaemonSet (USHER-P15).
 * Holds:    idempotent; order-independent except for which policy wins a conflict. The pod bypasses the scheduler.
 * Update:   immutable on pods and Jobs; never in a DaemonSet; mutable in other templates.
 */
export const nodeName = nameCriterion("nodeName", {
  description:
    "Name of the node to run on. The pod bypasses the scheduler. Mutually exclusive with schedulingGates.",
  mutability: { ...IMMUTABLE, daemonSet: "a DaemonSet runs on many nodes" },
  celRules: [
    {
      rule: "!has(self.nodeName) || self.nodeName == '' || !has(self.schedulingGates) || self.schedulingGates.size() == 0",
      message: "nodeName and schedulingGates are mutually exclusive",
    },
  ],
  reference: {
    kind: "Node",
    resource: "nodes",
    access: { group: "", resource: "nodes", verbs: ["get"], why: "see whether what a policy names exists" },
  },
  excluded: excludedByGate,
  notExcluded: `${fieldOf(schedulingGates.path)}.orValue([]).size() == 0`,
  // A pod with a node is left alone.
  firstCounts: "always",
  warnings: bypassed,
});

/** A pod with a gate may have no node, whichever of the two came first. If a policy has both, the gate is added. */
function excludedByGate(podSpec: Json | undefined, criteria: Criteria, limits: Limits): string | undefined {
  const brings =
    wantedOf(criteria, schedulingGates) !== undefined &&
    limits.immutable[schedulingGates.name] === undefined &&
    schedulingGates.excluded?.(podSpec, criteria, limits) === undefined;
  return brings || isGatedSpec(podSpec) ? "a pod with scheduling gates can't have a node" : undefined;
}

/** Criteria that only the scheduler reads have no effect; those that the kubelet checks can make it reject the pod. */
function bypassed(_wanted: string, criteria: Criteria): Problem[] {
  const texts = (by: "checks" | "ignores") => [
    ...new Set(criteria.filter((want) => want.criterion.kubelet === by).map((want) => want.criterion.text)),
  ];
  const [ignored, checked] = [texts("ignores"), texts("checks")];
  const say = (message: string) => [warningProblem(["spec", "nodeName"], message)];
  return [
    ...(ignored.length === 0 ? [] : say(`bypasses the scheduler: ${ignored.join(", ")} has no effect`)),
    ...(checked.length === 0
      ? []
      : say(`bypasses the scheduler: a node that does not match ${checked.join(" or ")} rejects the pod`)),
  ];
}

/** In CEL: the pod has no node. */
export const HAS_NO_NODE = `${fieldOf(nodeName.path)}.orValue("") == ""`;

/** The API server may call twice for one CREATE; the second time the pod has the node of a policy. */
export function isBoundByPolicy(pod: JsonObject): boolean {
  return provenanceOf(pod).some(
    ({ module, set }) => module === "placement" && set.includes(pointer(["spec", nodeName.name])),
  );
}
