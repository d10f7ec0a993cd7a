import { collectionPath } from "../../cluster/client/discovery.ts";
import { listAll } from "../../cluster/client/list-pages.ts";
import { poll } from "../../cluster/client/retry.ts";
import { type JsonObject, stringAt } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import { MODULE_LABEL } from "../../core/registration/managed-objects.ts";
import { POD_LABELS } from "../../core/registration/workload.ts";
import { describeObject, type Objects, selectorText } from "../install/apply.ts";
import { isReplicas, NotReadyError } from "../install/install.ts";
import { isWebhookConfiguration } from "../install/install-plan.ts";
import type { Removal } from "./uninstall-plan.ts";

export async function carryOutRemovals(
  objects: Objects,
  removals: readonly Removal[],
  done: (one: Removal) => void,
): Promise<void> {
  const recreatable: JsonObject[] = [];
  try {
    for (const removal of removals) {
      const { live, change } = removal;
      if (change === "delete") {
        await objects.remove(live);
        if (isRecreatable(live)) recreatable.push(live);
        if (isReplicas(live)) {
          await removeAgain(objects, recreatable);
          // Replicas that still run would create their Secret and their tallies again.
          await podsGone(objects, live);
          await removeAgain(objects, recreatable);
        }
      }
      done(removal);
    }
  } catch (error) {
    // Whatever failed, no request may wait for a partly removed usher. The first error is reported.
    await removeAgain(objects, recreatable).catch(() => undefined);
    throw error;
  }
  await removeAgain(objects, recreatable);
}

/** Webhooks and managed objects: a running leader creates them again, until it has lost the permission. */
function isRecreatable(live: JsonObject): boolean {
  return isWebhookConfiguration(live) || stringAt(live, "metadata", "labels", MODULE_LABEL) !== undefined;
}

/** A replica may have created them again just before it lost the permission. */
async function removeAgain(objects: Objects, recreatable: readonly JsonObject[]): Promise<void> {
  for (const one of recreatable) {
    const again = await objects.read(one);
    if (again !== undefined) await objects.remove(again);
  }
}

/** The grace period of the replicas, and some time for the kubelet. */
const END_MS = 60_000;

/** Waits until the pods of usher's Deployment are gone. */
async function podsGone(objects: Objects, deployment: JsonObject): Promise<void> {
  const namespace = namespaceOf(deployment);
  const path = collectionPath({ group: "", version: "v1", resource: "pods", namespaced: true }, namespace);
  let pods: readonly JsonObject[] = [];
  const isGone = await poll(END_MS, async () => {
    pods = await listAll(objects.client, path, { labelSelector: selectorText(POD_LABELS) });
    return pods.length === 0;
  });
  if (!isGone) throw new NotReadyError(stuckPods(deployment, pods));
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
