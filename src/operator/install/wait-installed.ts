import { StatusError } from "../../cluster/client/api-response.ts";
import { collectionPath } from "../../cluster/client/discovery.ts";
import { listAll } from "../../cluster/client/list-pages.ts";
import { poll } from "../../cluster/client/retry.ts";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { isBeingDeleted, nameOf } from "../../core/kubernetes/object.ts";
import { injectorOf } from "../../core/registration/certificates.ts";
import { OWN_NAMES } from "../../core/registration/names.ts";
import { OPENABLE_ANNOTATION } from "../../core/registration/webhooks.ts";
import { describeObject, type Objects, selectorText } from "./apply.ts";
import { isReplicas, NotReadyError } from "./install.ts";
import type { InstallPlan } from "./install-plan.ts";

export interface WaitOptions {
  readonly timeoutMs: number;
  /** Called with the ready replicas of all, then 1 of 1 when the webhooks are registered. */
  readonly progress: (ready: number, of: number) => void;
}

/** Waits until all pods are ready and a replica that stays leads and has registered its webhooks. */
export async function waitInstalled(
  objects: Objects,
  { objects: planned }: InstallPlan,
  { timeoutMs, progress }: WaitOptions,
): Promise<void> {
  const deployments = planned.map(({ object }) => object).filter(isDeployment);
  const webhooks = planned.filter(({ byUsher }) => byUsher).map(({ object }) => object);
  let missing: Missing | undefined;
  await poll(timeoutMs, async () => {
    missing =
      (await missingPods(objects, deployments, progress)) ??
      (await missingLeader(objects, deployments.find(isReplicas))) ??
      (await missingWebhook(objects, webhooks));
    return missing === undefined;
  });
  if (missing === undefined) return;
  const { what, deployment } = missing;
  const pods = deployment === undefined ? [] : await podProblems(objects, deployment);
  throw new NotReadyError([`not ready within ${timeoutMs / 1_000} s: ${what}`, ...pods].join("\n  "));
}

function isDeployment(object: JsonObject): boolean {
  return stringAt(object, "kind") === "Deployment";
}

interface Missing {
  readonly what: string;
  /** The Deployments whose pods may show the reason. */
  readonly deployment?: JsonObject;
}

async function missingPods(
  objects: Objects,
  deployments: readonly JsonObject[],
  progress: (ready: number, of: number) => void,
): Promise<Missing | undefined> {
  for (const deployment of deployments) {
    const live = await objects.read(deployment);
    const wanted = Number(at(live, "spec", "replicas") ?? 1);
    const seen = at(live, "status", "observedGeneration") === at(live, "metadata", "generation");
    const ready = seen ? Math.min(count(live, "updatedReplicas"), count(live, "readyReplicas")) : 0;
    const old = count(live, "replicas") > count(live, "updatedReplicas");
    const serves = isReplicas(deployment);
    const pods = serves ? "replicas" : `pods of ${nameOf(deployment)}`;
    if (serves) progress(ready, wanted);
    if (ready < wanted) return { what: `${ready} of ${wanted} ${pods} are ready`, deployment };
    if (old) return { what: `${pods} of the previous version still exist`, deployment };
  }
  return undefined;
}

/** The part of a webhook configuration that is not registered yet, or not fail-closed. */
function missingEntries(wanted: JsonObject, live: JsonObject | undefined): string | undefined {
  const what = describeObject(wanted);
  const entries = listAt(live, "webhooks");
  if (live === undefined || (entries.length === 0 && listAt(wanted, "webhooks").length > 0))
    return `usher runs and has not registered ${what}; see its log`;
  const injector = injectorOf(wanted);
  if (injector === undefined) return undefined;
  const isClosed = (entry: Json) => stringAt(entry, "failurePolicy") === "Fail";
  const openable = stringAt(live, "metadata", "annotations", OPENABLE_ANNOTATION) ?? "";
  const closed = new Set([
    ...openable.split(","),
    ...listAt(wanted, "webhooks").filter(isClosed).map(entryName),
  ]);
  if (entries.some((entry) => (stringAt(entry, "clientConfig", "caBundle") ?? "") === ""))
    return `${what} has no caBundle, without which API servers can't call usher: ${injector} writes it; see whether it runs`;
  const open = entries.find((entry) => closed.has(entryName(entry)) && !isClosed(entry));
  return open === undefined
    ? undefined
    : `${entryName(open)} of ${what} is open: usher closes it once the caBundle of ${injector} makes its certificate valid; see the log of its leader`;
}

function entryName(entry: Json): string {
  return stringAt(entry, "name") ?? "";
}

async function missingWebhook(
  objects: Objects,
  webhooks: readonly JsonObject[],
): Promise<Missing | undefined> {
  for (const webhook of webhooks) {
    const what = missingEntries(webhook, await objects.read(webhook));
    if (what !== undefined) return { what };
  }
  return undefined;
}

/**
 * A replica that ends leads until it has served its last request. The new version takes effect once another replica
 * leads: before that, webhooks are those of the previous version, and do not mark what the watchdog may open.
 */
async function missingLeader(
  objects: Objects,
  deployment: JsonObject | undefined,
): Promise<Missing | undefined> {
  if (deployment === undefined) return undefined;
  const inNamespace = (apiVersion: string, kind: string, name: string): JsonObject => ({
    apiVersion,
    kind,
    metadata: { name, namespace: stringAt(deployment, "metadata", "namespace") ?? "" },
  });
  const lease = inNamespace("coordination.k8s.io/v1", "Lease", OWN_NAMES.lease);
  const holder = stringAt(await objects.read(lease), "spec", "holderIdentity") ?? "";
  if (holder === "") return { what: `no replica leads: ${describeObject(lease)} has no holder` };
  const pod = await objects.read(inNamespace("v1", "Pod", holder));
  if (pod !== undefined && !isBeingDeleted(pod)) return undefined;
  return { what: `no replica leads: ${holder} held ${describeObject(lease)}, and ends` };
}

function count(deployment: JsonObject | undefined, field: string): number {
  return Number(at(deployment, "status", field) ?? 0);
}

/** Why replicas do not become ready, by the kubelet or the scheduler. */
async function podProblems(objects: Objects, deployment: JsonObject): Promise<string[]> {
  const namespace = stringAt(deployment, "metadata", "namespace") ?? "";
  const labels = at(deployment, "spec", "selector", "matchLabels") as Readonly<Record<string, string>>;
  const path = collectionPath({ group: "", version: "v1", resource: "pods", namespaced: true }, namespace);
  let pods: JsonObject[];
  try {
    pods = await listAll(objects.client, path, { labelSelector: selectorText(labels) });
  } catch (error) {
    if (error instanceof StatusError) return [error.message];
    throw error;
  }
  if (pods.length === 0) return ["no pods were created: kubectl describe its ReplicaSet shows why"];
  return pods.map((pod) => `pod ${nameOf(pod)}: ${podProblem(pod)}`);
}

function podProblem(pod: JsonObject): string {
  for (const status of listAt(pod, "status", "containerStatuses")) {
    for (const state of ["waiting", "terminated"]) {
      const why = at(status, "state", state);
      if (why !== undefined)
        return [stringAt(why, "reason") ?? state, stringAt(why, "message") ?? ""].filter(Boolean).join(": ");
    }
  }
  const unmet = listAt(pod, "status", "conditions").find((one) => stringAt(one, "status") === "False");
  return (
    stringAt(unmet, "message") ?? stringAt(unmet, "reason") ?? stringAt(pod, "status", "phase") ?? "unknown"
  );
}
