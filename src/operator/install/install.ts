import { StatusError } from "../../cluster/client/api-response.ts";
import { collectionPath } from "../../cluster/client/discovery.ts";
import { listAll } from "../../cluster/client/list-pages.ts";
import { pause } from "../../cluster/client/retry.ts";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import { injectorOf } from "../../core/registration/certificates.ts";
import { OWN_LABELS, OWN_NAMES } from "../../core/registration/names.ts";
import { OPENABLE_ANNOTATION } from "../../core/registration/webhooks.ts";
import { POD_LABELS } from "../../core/registration/workload.ts";
import { describeObject, type Objects, selectorText } from "./apply.ts";
import type { InstallPlan, PlannedObject } from "./install-plan.ts";

/** Short enough that a person does not notice the wait. */
const POLL_EVERY_MS = 500;

/** The API server establishes a CRD within a second or two; longer means that its names are in use. */
const ESTABLISH_MS = 30_000;

/** Not ready within the timeout; the message says what the state is. */
export class NotReadyError extends Error {}

/** Carries out a plan in its order, and calls `done` for each object. */
export async function applyPlan(
  objects: Objects,
  { objects: planned }: InstallPlan,
  done: (one: PlannedObject) => void,
): Promise<void> {
  for (const one of planned) {
    const write = !one.byUsher && (one.change === "create" || one.change === "update");
    if (write) await objects.apply(one.object);
    if (write && one.from !== undefined) await objects.dropMarks(one.object, one.from.marks);
    // An adopted one only gets usher's labels: the leader repairs what is usher's, and leaves the rest.
    if (one.byUsher && one.change === "update") await objects.apply(labelsOnly(one.object));
    // Later objects may need the kinds to be served.
    if (write && stringAt(one.object, "kind") === "CustomResourceDefinition")
      await establish(objects, one.object);
    done(one);
  }
}

/** Only what makes an object usher's. */
function labelsOnly({ apiVersion, kind, metadata }: JsonObject): JsonObject {
  const name = stringAt(metadata, "name") ?? "";
  return { apiVersion: apiVersion ?? "", kind: kind ?? "", metadata: { name, labels: OWN_LABELS } };
}

/** Waits until the API server serves a kind. */
export async function establish(objects: Objects, crd: JsonObject): Promise<void> {
  const until = performance.now() + ESTABLISH_MS;
  for (;;) {
    const conditions = listAt(await objects.read(crd), "status", "conditions");
    if (
      conditions.some((one) => stringAt(one, "type") === "Established" && stringAt(one, "status") === "True")
    )
      return;
    if (performance.now() > until) {
      const why = conditions.find((one) => stringAt(one, "status") === "False");
      throw new NotReadyError(
        `${describeObject(crd)} is not served: ${stringAt(why, "message") ?? "the API server gives no reason"}`,
      );
    }
    await pause(POLL_EVERY_MS);
  }
}

export interface WaitOptions {
  readonly timeoutMs: number;
  /** Called with the ready replicas of all, then 1 of 1 when the webhooks are registered. */
  readonly progress: (ready: number, of: number) => void;
}

/** Waits until every replica is ready and usher has registered its webhooks. */
export async function waitInstalled(
  objects: Objects,
  { objects: planned }: InstallPlan,
  { timeoutMs, progress }: WaitOptions,
): Promise<void> {
  const until = performance.now() + timeoutMs;
  const deployment = planned.find(({ object }) => isReplicas(object))?.object;
  const webhooks = planned.filter(({ byUsher }) => byUsher).map(({ object }) => object);
  for (;;) {
    const missing = await missingPart(objects, deployment, webhooks, progress);
    if (missing === undefined) return;
    if (performance.now() > until) {
      const pods = deployment === undefined ? [] : await podProblems(objects, deployment);
      throw new NotReadyError([`not ready within ${timeoutMs / 1_000} s: ${missing}`, ...pods].join("\n  "));
    }
    await pause(POLL_EVERY_MS);
  }
}

/** The Deployment that serves. */
export function isReplicas(object: JsonObject): boolean {
  return stringAt(object, "kind") === "Deployment" && nameOf(object) === OWN_NAMES.deployment;
}

async function missingPart(
  objects: Objects,
  deployment: JsonObject | undefined,
  webhooks: readonly JsonObject[],
  progress: (ready: number, of: number) => void,
): Promise<string | undefined> {
  if (deployment !== undefined) {
    const live = await objects.read(deployment);
    const wanted = Number(at(live, "spec", "replicas") ?? 1);
    const seen = at(live, "status", "observedGeneration") === at(live, "metadata", "generation");
    const ready = seen ? Math.min(count(live, "updatedReplicas"), count(live, "readyReplicas")) : 0;
    const old = count(live, "replicas") > count(live, "updatedReplicas");
    progress(ready, wanted);
    if (ready < wanted) return `${ready} of ${wanted} replicas are ready`;
    if (old) return "replicas of the previous version still exist";
  }
  for (const webhook of webhooks) {
    const missing = missingEntries(webhook, await objects.read(webhook));
    if (missing !== undefined) return missing;
  }
  return undefined;
}

/** What of a webhook configuration is not registered yet, or not closed. */
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

function count(deployment: JsonObject | undefined, field: string): number {
  return Number(at(deployment, "status", field) ?? 0);
}

/** Why replicas do not become ready, as the kubelet or the scheduler says. */
async function podProblems(objects: Objects, deployment: JsonObject): Promise<string[]> {
  const namespace = stringAt(deployment, "metadata", "namespace") ?? "";
  const path = collectionPath({ group: "", version: "v1", resource: "pods", namespaced: true }, namespace);
  let pods: JsonObject[];
  try {
    pods = await listAll(objects.client, path, { labelSelector: selectorText(POD_LABELS) });
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
