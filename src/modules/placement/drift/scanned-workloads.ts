import { isObject, type JsonObject } from "../../../core/json.ts";
import {
  controllerOf,
  groupVersionOf,
  isBeingDeleted,
  isMirrorPod,
} from "../../../core/kubernetes/object.ts";
import { isFinished, UNBOUND_PODS, unboundSpec } from "../../../core/kubernetes/pod-state.ts";
import {
  BUILT_IN_WORKLOADS,
  isPod,
  type WorkloadKind,
  type WorkloadTable,
} from "../../../core/kubernetes/workloads.ts";
import type { Access, AccessToEach, DriftScan } from "../../../core/module/module.ts";
import { provenanceOf } from "../../../core/provenance/annotation.ts";
import { REAPPLY } from "../../../core/provenance/reapply.ts";
import { mutabilityOf } from "../place/mutability.ts";
import { leftAlone } from "../select/eligibility.ts";
import { PLACED, placedWorkloads, REPAIRS_DRIFT } from "../settings.ts";

/** Which stored workloads are scanned, and how a policy is reapplied to them. */
export const driftScan: DriftScan = {
  annotation: REAPPLY,
  // Scheduled pods are immutable, and most pods are scheduled.
  fieldSelector: (workload) => (isPod(workload) ? UNBOUND_PODS : undefined),
  leftAlone: (object, workload, workloads) => {
    const apart = leftAlone(object, workload, workloads, "UPDATE") ?? ofKnown(object, workload, workloads);
    if (apart !== undefined) return apart;
    const mutability = mutabilityOf(workload, object);
    return "immutable" in mutability ? mutability.immutable : undefined;
  },
  // An object with injections was admitted by usher; it is compared as an update.
  asNew: (object, workload, workloads) => {
    const apart = leftAlone(object, workload, workloads, "UPDATE") ?? ofKnown(object, workload, workloads);
    const placed = provenanceOf(object).some(({ module }) => module === "placement");
    if (apart !== undefined || placed || isFinished(object)) return undefined;
    return isPod(workload) ? withoutNode(object) : object;
  },
  kinds: placedWorkloads,
  // A user may have written any object with an owner. Pods of other controllers were evaluated when they were created.
  judged: (object, workload) => {
    if (isBeingDeleted(object) || isMirrorPod(object) || isFinished(object)) return undefined;
    const owner = controllerOf(object);
    const ofDaemonSet = owner?.kind === "DaemonSet" && groupVersionOf(owner.apiVersion).group === "apps";
    if (isPod(workload)) return ofDaemonSet || owner === undefined ? object : undefined;
    // A Deployment with such a template is listed itself.
    return workload.kind === "ReplicaSet" && owner !== undefined ? undefined : object;
  },
};

/** A pod whose controller replaces it once its template has changed. */
function ofKnown(object: JsonObject, workload: WorkloadKind, workloads: WorkloadTable): string | undefined {
  const controller = isPod(workload) ? controllerOf(object) : undefined;
  if (controller === undefined) return undefined;
  const { group } = groupVersionOf(controller.apiVersion);
  const known = workloads.byKind(group, controller.kind) !== undefined;
  return known ? `it belongs to ${controller.kind} ${controller.name}` : undefined;
}

function withoutNode(pod: JsonObject): JsonObject {
  return { ...pod, spec: unboundSpec(isObject(pod["spec"]) ? pod["spec"] : {}) };
}

const GRANTS = [
  { verbs: ["get", "list"], why: "scan for drift, and look up workloads that are scaled", when: [PLACED] },
  { verbs: ["patch"], why: "reapply policies to workloads that drifted", when: [PLACED, REPAIRS_DRIFT] },
] as const;

/** To the workloads that placement changes and checks. */
export const DRIFT_ACCESS: readonly (Access | AccessToEach)[] = GRANTS.flatMap((grant) => [
  ...BUILT_IN_WORKLOADS.map(({ group, resource }) => ({ group, resource, ...grant })),
  { each: "workloads" as const, ...grant },
]);
