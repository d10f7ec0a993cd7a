import { at, isObject, type Json, type JsonObject, listAt, own, stringAt } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";

/** What the API server writes into each pod and template that names no scheduler, before it asks any webhook. */
export const DEFAULT_SCHEDULER = "default-scheduler";

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/**
 * Whether whoever wrote the object named the default scheduler himself. It shows where the object was applied: by the client, which notes
 * the manifest in an annotation, or by the server, which notes each field's manager. Managers by `Update` say nothing: a controller
 * that writes an object back owns the defaults with it.
 */
export function meansDefaultScheduler(object: JsonObject, spec: Path): boolean {
  const manifest = parsed(stringAt(object, "metadata", "annotations", LAST_APPLIED));
  if (at(manifest, ...spec, "schedulerName") !== undefined) return true;
  const fields = [...spec, "schedulerName"].map((step) => `f:${step}`);
  return listAt(object, "metadata", "managedFields").some(
    (entry) => own(entry, "operation") === "Apply" && at(entry, "fieldsV1", ...fields) !== undefined,
  );
}

function parsed(text: string | undefined): Json | undefined {
  if (text === undefined) return undefined;
  try {
    const value: Json = JSON.parse(text);
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
