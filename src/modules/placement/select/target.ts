import type { Operation } from "../../../core/evaluate/request.ts";
import type { JsonObject } from "../../../core/json.ts";
import {
  controllerOf,
  groupVersionOf,
  isBeingDeleted,
  isMirrorPod,
} from "../../../core/kubernetes/object.ts";
import { isBound } from "../../../core/kubernetes/pod-state.ts";
import type { WorkloadKind, WorkloadTable } from "../../../core/kubernetes/workloads.ts";
import { isBoundByPolicy } from "../criteria/node-name.ts";
import type { PlacementPolicy } from "../policy/policy.ts";

/** A pod itself, not a controller of pods. */
export function isPod({ group, kind }: WorkloadKind): boolean {
  return group === "" && kind === "Pod";
}

/**
 * Why an object is exempt from all policies; `undefined` where it may be changed.
 *
 * Two writers of one template fight: a Deployment finds its ReplicaSet by comparing templates, so a ReplicaSet changed by usher would be
 * created again and again. Objects of a controller of a known kind get their criteria from that controller's template.
 */
export function leftAlone(
  object: JsonObject,
  workload: WorkloadKind,
  workloads: WorkloadTable,
  operation: Operation,
): string | undefined {
  if (isBeingDeleted(object)) return "it is being deleted";
  const controller = controllerOf(object);
  const owner =
    controller === undefined
      ? undefined
      : workloads.byKind(groupVersionOf(controller.apiVersion).group, controller.kind);
  if (isPod(workload)) {
    if (isMirrorPod(object)) return "it mirrors a static pod, which runs already";
    // On UPDATE a pod with a node gets nothing new either, but keeps what it has.
    if (operation === "CREATE" && isBound(object) && !isBoundByPolicy(object)) return "it already has a node";
    // The DaemonSet controller decides by the template on which nodes a pod belongs: a pod placed otherwise never fits.
    if (owner?.kind === "DaemonSet") return "it is placed through the template of its DaemonSet";
    return undefined;
  }
  if (workload.kind === "ReplicaSet" && controller !== undefined) {
    return `it belongs to ${controller.kind} ${controller.name}`;
  }
  // A CronJob copies its template into each Job and never looks back, so those may be changed on their own.
  if (owner !== undefined && owner.kind !== "CronJob")
    return `it belongs to ${owner.kind} ${controller?.name ?? ""}`;
  return undefined;
}

/** Why a policy does not target pods, or templates. */
export function notTargeted({ targets }: PlacementPolicy, workload: WorkloadKind): string | undefined {
  if (targets === "Both") return undefined;
  if (isPod(workload)) return targets === "Pods" ? undefined : "it is for templates only (spec.targets)";
  return targets === "Templates" ? undefined : "it is for pods only (spec.targets)";
}
