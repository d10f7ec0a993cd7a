import type { DriftScan } from "../../../core/drift/drift-scan.ts";
import { isObject, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { controllerOf, groupVersionOf } from "../../../core/kubernetes/object.ts";
import { UNBOUND_PODS, unboundSpec } from "../../../core/kubernetes/pod-state.ts";
import type { WorkloadKind, WorkloadTable } from "../../../core/kubernetes/workloads.ts";
import type { Installation } from "../../../core/module/installation.ts";
import type { Access } from "../../../core/module/module.ts";
import { provenanceOf } from "../../../core/provenance/origin.ts";
import { isPod, leftAlone } from "../select/target.ts";
import { mutabilityOf } from "../update/mutability.ts";
import { REAPPLY } from "../update/reapply.ts";
import { repairsDrift } from "./drift-repair.ts";

/** What of the stored workloads is looked at, and how they are asked to be placed anew. */
export const driftScan: DriftScan = {
  annotation: REAPPLY,
  // A pod on its node can't be changed any more, and most are.
  fieldSelector: (workload) => (isPod(workload) ? UNBOUND_PODS : undefined),
  leftAlone: (object, workload, workloads) => {
    const apart = leftAlone(object, workload, workloads, "UPDATE") ?? ofKnown(object, workload, workloads);
    if (apart !== undefined) return apart;
    const mutability = mutabilityOf(workload, object);
    return "immutable" in mutability ? mutability.immutable : undefined;
  },
  // One that has something of a policy came in while usher was there, and can't be helped otherwise.
  asNew: (object, workload, workloads) => {
    const apart = leftAlone(object, workload, workloads, "UPDATE") ?? ofKnown(object, workload, workloads);
    const placed = provenanceOf(object).some(({ module }) => module === "placement");
    if (apart !== undefined || placed || isOver(object)) return undefined;
    return isPod(workload) ? withoutNode(object) : object;
  },
};

/** A pod whose controller makes new ones once its template has changed. */
function ofKnown(object: JsonObject, workload: WorkloadKind, workloads: WorkloadTable): string | undefined {
  const controller = isPod(workload) ? controllerOf(object) : undefined;
  if (controller === undefined) return undefined;
  const { group } = groupVersionOf(controller.apiVersion);
  const known = workloads.byKind(group, controller.kind) !== undefined;
  return known ? `it belongs to ${controller.kind} ${controller.name}` : undefined;
}

/** A pod or a Job that has run to its end: where it should have run matters to nobody. */
function isOver(object: JsonObject): boolean {
  const phase = stringAt(object, "status", "phase");
  if (phase === "Succeeded" || phase === "Failed") return true;
  return listAt(object, "status", "conditions").some(
    (one) => /^(?:Complete|Failed)$/.test(stringAt(one, "type") ?? "") && stringAt(one, "status") === "True",
  );
}

function withoutNode(pod: JsonObject): JsonObject {
  return { ...pod, spec: unboundSpec(isObject(pod["spec"]) ? pod["spec"] : {}) };
}

/** Reading is for the drift scan; writing only where drift repair is enabled. */
export function driftAccess(installation: Installation): readonly Access[] {
  const verbs = repairsDrift(installation) ? (["get", "list", "patch"] as const) : (["list"] as const);
  return installation.workloads.all.map(({ group, resource }) => ({ group, resource, verbs }));
}
