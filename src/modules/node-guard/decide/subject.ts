import type { AdmissionRequest } from "../../../core/evaluate/request.ts";
import { type JsonObject, stringAt } from "../../../core/json.ts";

/** Whose request it is, and whose pod. */
export interface GuardedPod {
  readonly request: AdmissionRequest;
  /** `pod shop/web`, the same at every retry of a controller. */
  readonly name: string;
  /** Of the pod. */
  readonly namespace: string;
  /** `undefined`: not known, as of a Binding. */
  readonly account: string | undefined;
}

/** The service account of a pod; the deprecated field is an alias that the API server fills in both ways. */
export function accountOf(podSpec: JsonObject | undefined): string {
  return stringAt(podSpec, "serviceAccountName") || stringAt(podSpec, "serviceAccount") || "default";
}

/** A generated name is another one at each retry. */
export function describePod(request: AdmissionRequest): string {
  const generated = stringAt(request.object, "metadata", "generateName") ?? "";
  const name = request.operation === "CREATE" && generated !== "" ? `${generated}*` : podNameOf(request);
  return `pod ${request.namespace}/${name}`;
}

/** Of a Binding that names none in its URL the object's. */
export function podNameOf({ name, object }: AdmissionRequest): string {
  return name === "" ? (stringAt(object, "metadata", "name") ?? "") : name;
}
