import { collectionPath } from "../../cluster/client/discovery.ts";
import { listAll } from "../../cluster/client/list-pages.ts";
import { pause } from "../../cluster/client/retry.ts";
import { type JsonObject, stringAt } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import { POD_LABELS } from "../../core/registration/workload.ts";
import { describeObject, type Objects, selectorText } from "../install/apply.ts";
import { NotReadyError } from "../install/install.ts";

/** The grace period of the replicas, and some time for the kubelet. */
const END_MS = 60_000;
const POLL_EVERY_MS = 500;

/** Waits until the pods of usher's Deployment are gone. */
export async function podsGone(objects: Objects, deployment: JsonObject): Promise<void> {
  const namespace = namespaceOf(deployment);
  const path = collectionPath({ group: "", version: "v1", resource: "pods", namespaced: true }, namespace);
  const until = performance.now() + END_MS;
  for (;;) {
    const pods = await listAll(objects.client, path, { labelSelector: selectorText(POD_LABELS) });
    if (pods.length === 0) return;
    if (performance.now() > until) throw new NotReadyError(stuckPods(deployment, pods));
    await pause(POLL_EVERY_MS);
  }
}

function stuckPods(deployment: JsonObject, pods: readonly JsonObject[]): string {
  const where = pods.map((pod) => `${nameOf(pod)} on node ${stringAt(pod, "spec", "nodeName") ?? "none"}`);
  const names = pods.map(nameOf).join(" ");
  return [
    `the pods of ${describeObject(deployment)} do not terminate: ${where.join(", ")}`,
    "the webhooks are deleted, so no request waits for usher. Run this again when the pods are gone; if their node is dead, delete them with",
    `kubectl delete pod -n ${namespaceOf(deployment)} ${names} --force --grace-period=0`,
  ].join("\n  ");
}
