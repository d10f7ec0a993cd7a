import { equal, type JsonObject, stringAt } from "../../../core/json.ts";
import { forbidden, type PodFieldError } from "../field-error.ts";
import { validatePodOS } from "./validate.ts";

/** The mutable fields of a pod's spec, as the API server lists them. */
const UPDATABLE = [
  "`spec.containers[*].image`",
  "`spec.initContainers[*].image`",
  "`spec.activeDeadlineSeconds`",
  "`spec.tolerations` (only additions to existing tolerations)",
  "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)",
].join(",");

/**
 * The API server's errors about the OS of an updated pod: of all of the new spec, and of a changed `os`, which is
 * immutable in pods and mutable in templates. The API server appends a difference of both specs to the message.
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

/** The API server's answer to `pods/resize`: for a Windows pod this one error in place of all others. */
export function validatePodOSResize(before: JsonObject | undefined): PodFieldError[] {
  return stringAt(before, "os", "name") === "windows"
    ? [forbidden("[]", "windows pods cannot be resized")]
    : [];
}
