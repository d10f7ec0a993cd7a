import { at, isObject, type Json, type JsonObject, listAt, own, stringAt } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";
import { IMMUTABLE } from "./criterion.ts";
import { nameCriterion } from "./name-criterion.ts";

/** The API server writes it into each pod and template that names no scheduler, before it calls any webhook. */
const DEFAULT_SCHEDULER = "default-scheduler";

const LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration";

/**
 * schedulerName
 *
 * Field:    spec.schedulerName
 * Merge:    set where the pod has none; otherwise kept (USHER-P10). default-scheduler counts as none unless the applied manifest names it.
 * Holds:    idempotent; order-independent except for which policy wins a conflict.
 * Update:   immutable on pods and Jobs; mutable in templates.
 */
export const schedulerName = nameCriterion("schedulerName", {
  description: "Name of the scheduler that dispatches the pod. Set where the pod names none.",
  anyText: true,
  mutability: IMMUTABLE,
  kubelet: "ignores",
  defaulted: { value: DEFAULT_SCHEDULER, isChosen: choosesScheduler },
});

/**
 * Whether the author of the object named the default scheduler. It is known if the object was applied: by the client,
 * which records the manifest in an annotation, or by the server, which records each field's manager. Managers by
 * `Update` prove nothing: a controller that writes an object back owns the defaults with it.
 */
export function choosesScheduler(object: JsonObject, spec: Path): boolean {
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
