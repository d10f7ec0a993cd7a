import type { JsonObject } from "../../core/json.ts";
import { stringAt } from "../../core/json.ts";
import { controllerOf, groupVersionOf, isBeingDeleted, isMirrorPod } from "../../core/kubernetes/object.ts";
import type { WorkloadKind, WorkloadTable } from "../../core/kubernetes/workloads.ts";

/**
 * Why an object is left as it is, whatever the policies say; `undefined` where it may be changed.
 *
 * Two hands on one template fight: a Deployment finds its ReplicaSet by comparing templates, so a ReplicaSet changed by us would be
 * made again and again. What a controller of a known kind makes has its criteria from that controller's own template.
 */
export function leftAlone(
  object: JsonObject,
  workload: WorkloadKind,
  workloads: WorkloadTable,
): string | undefined {
  if (isBeingDeleted(object)) return "it is being deleted";
  const controller = controllerOf(object);
  const owner =
    controller === undefined
      ? undefined
      : workloads.byKind(groupVersionOf(controller.apiVersion).group, controller.kind);
  if (workload.kind === "Pod" && workload.group === "") {
    if (isMirrorPod(object)) return "it mirrors a static pod, which runs already";
    if ((stringAt(object, "spec", "nodeName") ?? "") !== "") return "it has its node already";
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
