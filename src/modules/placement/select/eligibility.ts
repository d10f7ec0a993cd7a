import type { Operation } from "../../../core/decision/request.ts";
import type { JsonObject } from "../../../core/json.ts";
import {
  controllerOf,
  groupVersionOf,
  isBeingDeleted,
  isMirrorPod,
} from "../../../core/kubernetes/object.ts";
import { isBound } from "../../../core/kubernetes/pod-state.ts";
import { isPod, type WorkloadKind, type WorkloadTable } from "../../../core/kubernetes/workloads.ts";
import { isBoundByPolicy } from "../criteria/node-name.ts";
import type { PlacementPolicy } from "../policy/policy.ts";

/** Why an object is exempt from changes by all policies; `undefined` if it may be changed. */
export function leftAlone(
  object: JsonObject,
  workload: WorkloadKind,
  workloads: WorkloadTable,
  operation: Operation,
): string | undefined {
  if (isBeingDeleted(object)) return "it is being deleted";
  if (isPod(workload)) {
    if (isMirrorPod(object)) return "it mirrors a static pod, which runs already";
    // On UPDATE a pod with a node gets nothing new either, but keeps its injections.
    if (operation === "CREATE" && isBound(object) && !isBoundByPolicy(object)) return "it already has a node";
  }
  return ownedBy(object, workload, workloads);
}

/**
 * Why the owner of an object places it.
 *
 * Two writers of one template fight: a Deployment finds its ReplicaSet by comparing templates, so a ReplicaSet changed
 * by usher would be created again and again. Objects of a controller of a known kind get their criteria from that
 * controller's template. Any author of an object can claim an owner, so this is not a reason to admit an object: see
 * enforce/enforcement-scope.ts.
 */
export function ownedBy(
  object: JsonObject,
  workload: WorkloadKind,
  workloads: WorkloadTable,
): string | undefined {
  const controller = controllerOf(object);
  if (controller === undefined) return undefined;
  const owner = workloads.byKind(groupVersionOf(controller.apiVersion).group, controller.kind);
  // The DaemonSet controller chooses a pod's node by the template: a pod with other constraints never fits.
  if (isPod(workload))
    return owner?.kind === "DaemonSet" ? "it is placed through the template of its DaemonSet" : undefined;
  const belongs = `it belongs to ${controller.kind} ${controller.name}`;
  if (workload.kind === "ReplicaSet") return belongs;
  // A CronJob copies its template into each Job and never compares it, so Jobs may be changed on their own.
  return owner === undefined || owner.kind === "CronJob" ? undefined : belongs;
}

/** Why a policy does not target pods, or templates. */
export function notTargeted({ targets }: PlacementPolicy, workload: WorkloadKind): string | undefined {
  if (targets === "Both") return undefined;
  if (isPod(workload)) return targets === "Pods" ? undefined : "it is for templates only (spec.targets)";
  return targets === "Templates" ? undefined : "it is for pods only (spec.targets)";
}
