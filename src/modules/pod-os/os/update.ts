import { equal, type JsonObject, stringAt } from "../../../core/json.ts";
import { forbidden, type PodFieldError } from "../field-error.ts";
import { validatePodOS } from "./validate.ts";

/** What of a pod's spec may change, as the API server lists it. */
const UPDATABLE = [
  "`spec.containers[*].image`",
  "`spec.initContainers[*].image`",
  "`spec.activeDeadlineSeconds`",
  "`spec.tolerations` (only additions to existing tolerations)",
  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
].join(",");

/**
 * What the API server finds wrong with the OS of a pod that is updated: all of the new spec, and a changed `os`, which is
 * immutable in pods and free in templates. The API server appends a difference of both specs to the message.
 */
export function validatePodOSUpdate(
  before: JsonObject | undefined,
  after: JsonObject | undefined,
  most?: number,
): PodFieldError[] {
  const errors = validatePodOS(after, "spec", most);
  const [old, now] = [before?.["os"] ?? undefined, after?.["os"] ?? undefined];
  if (!equal(old, now))
    errors.push(forbidden("spec", `pod updates may not change fields other than ${UPDATABLE}`));
  return errors;
}

/** What the API server answers to `pods/resize`: for a Windows pod this one error in place of all others. */
export function validatePodOSResize(before: JsonObject | undefined): PodFieldError[] {
  return stringAt(before, "os", "name") === "windows"
    ? [forbidden("[]", "windows pods cannot be resized")]
    : [];
}
