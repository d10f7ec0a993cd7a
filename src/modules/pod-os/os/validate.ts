import { isObject, type Json, type JsonObject, textOf } from "../../../core/json.ts";
import { forbidden, notSupported, type PodFieldError, required } from "../field-error.ts";
import { validateStopSignals } from "./stop-signals.ts";
import {
  CONTAINER_LISTS,
  LINUX_CONTEXT,
  LINUX_DETAIL,
  RESOURCES_DETAIL,
  WINDOWS_CONTAINER_CONTEXT,
  WINDOWS_DETAIL,
  WINDOWS_POD,
  WINDOWS_POD_CONTEXT,
} from "./tables.ts";

/** Whether the API server finds nothing wrong with the OS of a pod spec. */
export function isValidOS(spec: JsonObject): boolean {
  return validatePodOS(spec, "spec", 1).length === 0;
}

/**
 * The API server's errors about the OS of a pod spec, in its order and wording. `prefix` is the field of the spec:
 * `spec` for a Pod, `spec.template.spec` for most templates. A spec without `os` has errors only for stop signals.
 * Containers are no longer read once there are `most` errors.
 */
export function validatePodOS(
  spec: JsonObject | undefined,
  prefix = "spec",
  most = Number.POSITIVE_INFINITY,
): PodFieldError[] {
  if (!isObject(spec)) return [];
  const errors = validateStopSignals(spec, prefix, most);
  const os = spec["os"];
  if (!isPresent(os)) return errors;
  // A value that is not an object has no name.
  const name = isObject(os) ? os["name"] : undefined;
  if (name === "windows" && isPresent(spec["resources"]))
    errors.push(forbidden(`${prefix}.resources`, RESOURCES_DETAIL));
  if (!isPresent(name) || name === "") errors.push(required(`${prefix}.os.name`));
  else if (name === "linux") {
    forbidPodContext(spec, prefix, LINUX_CONTEXT, LINUX_DETAIL, errors);
    forbidContainerContexts(spec, prefix, LINUX_CONTEXT, LINUX_DETAIL, errors, most);
  } else if (name === "windows") {
    forbidPodContext(spec, prefix, WINDOWS_POD_CONTEXT, WINDOWS_DETAIL, errors);
    for (const field of WINDOWS_POD)
      if (isForbiddenInWindows(field, spec[field]))
        errors.push(forbidden(`${prefix}.${field}`, WINDOWS_DETAIL));
    forbidContainerContexts(spec, prefix, WINDOWS_CONTAINER_CONTEXT, WINDOWS_DETAIL, errors, most);
  } else errors.push(notSupported(`${prefix}.os`, textOf(name), ["linux", "windows"]));
  return errors;
}

function isPresent(value: Json | undefined): boolean {
  return value !== undefined && value !== null;
}

function isForbiddenInWindows(field: string, value: Json | undefined): boolean {
  if (field === "hostPID" || field === "hostIPC") return isPresent(value) && value !== false;
  if (field === "sysctls" && Array.isArray(value)) return value.length > 0;
  return isPresent(value);
}

function forbidPodContext(
  spec: JsonObject,
  prefix: string,
  fields: readonly string[],
  detail: string,
  errors: PodFieldError[],
): void {
  const context = spec["securityContext"];
  if (!isObject(context)) return;
  for (const field of fields)
    if (isForbiddenInWindows(field, context[field]))
      errors.push(forbidden(`${prefix}.securityContext.${field}`, detail));
}

function forbidContainerContexts(
  spec: JsonObject,
  prefix: string,
  fields: readonly string[],
  detail: string,
  errors: PodFieldError[],
  most: number,
): void {
  for (const list of CONTAINER_LISTS) {
    const containers = spec[list];
    if (!Array.isArray(containers)) continue;
    for (let i = 0; i < containers.length && errors.length < most; i++) {
      const container: Json | undefined = containers[i];
      const context = isObject(container) ? container["securityContext"] : undefined;
      if (!isObject(context)) continue;
      for (const field of fields)
        if (isPresent(context[field]))
          errors.push(forbidden(`${prefix}.${list}[${i}].securityContext.${field}`, detail));
    }
  }
}
