import { poll } from "../../cluster/client/retry.ts";
import { type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { nameOf } from "../../core/kubernetes/object.ts";
import { OWN_LABELS, OWN_NAMES } from "../../core/registration/names.ts";
import { describeObject, type Objects } from "./apply.ts";
import type { InstallPlan, PlannedObject } from "./install-plan.ts";

/** The API server establishes a CRD within a second or two; longer means that its names are in use. */
const ESTABLISH_MS = 30_000;

/** Not ready within the timeout; the message has the state. */
export class NotReadyError extends Error {}

/** Executes a plan in order, and calls `done` for each object. */
export async function applyPlan(
  objects: Objects,
  { objects: planned }: InstallPlan,
  done: (one: PlannedObject) => void,
): Promise<void> {
  for (const one of planned) {
    const write = !one.byUsher && (one.change === "create" || one.change === "update");
    if (write) await objects.apply(one.object);
    if (write && one.from !== undefined) await objects.dropMarks(one.object, one.from.marks);
    // An adopted one only gets usher's labels: the leader repairs usher's fields, and leaves the rest.
    if (one.byUsher && one.change === "update") await objects.apply(labelsOnly(one.object));
    // Later objects may need the kinds to be served.
    if (write && stringAt(one.object, "kind") === "CustomResourceDefinition")
      await establish(objects, one.object);
    done(one);
  }
}

/** Only the labels that mark an object as usher's. */
function labelsOnly({ apiVersion, kind, metadata }: JsonObject): JsonObject {
  const name = stringAt(metadata, "name") ?? "";
  return { apiVersion: apiVersion ?? "", kind: kind ?? "", metadata: { name, labels: OWN_LABELS } };
}

/** Waits until the API server serves a kind. */
export async function establish(objects: Objects, crd: JsonObject): Promise<void> {
  let conditions: readonly Json[] = [];
  const isServed = await poll(ESTABLISH_MS, async () => {
    conditions = listAt(await objects.read(crd), "status", "conditions");
    return conditions.some(
      (one) => stringAt(one, "type") === "Established" && stringAt(one, "status") === "True",
    );
  });
  if (isServed) return;
  const why = conditions.find((one) => stringAt(one, "status") === "False");
  throw new NotReadyError(
    `${describeObject(crd)} is not served: ${stringAt(why, "message") ?? "the API server gives no reason"}`,
  );
}

/** The Deployment that serves. */
export function isReplicas(object: JsonObject): boolean {
  return stringAt(object, "kind") === "Deployment" && nameOf(object) === OWN_NAMES.deployment;
}
