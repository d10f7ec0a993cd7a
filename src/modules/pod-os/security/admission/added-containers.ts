import { isObject, type Json, type JsonObject, listAt, stringAt } from "../../../../core/json.ts";

/** The part of the pod's security context that a container inherits unless it sets its own. */
const INHERITED = [
  "runAsNonRoot",
  "runAsUser",
  "seccompProfile",
  "seLinuxOptions",
  "appArmorProfile",
] as const;

/** Annotations of single containers end in their names. */
const OF_CONTAINER = "container.";

/**
 * Only the added part of a pod: its new ephemeral containers, each with its inherited settings, so that none gets from
 * a pod what it may not set itself. The rest of the pod is not evaluated.
 */
export function addedContainers(
  metadata: JsonObject,
  spec: JsonObject,
  old: JsonObject | undefined,
): { readonly metadata: JsonObject; readonly spec: JsonObject } {
  const known = new Set(listAt(old, "ephemeralContainers").map((one) => stringAt(one, "name")));
  const added = listAt(spec, "ephemeralContainers").filter((one) => !known.has(stringAt(one, "name")));
  const names = new Set(added.map((one) => stringAt(one, "name")));
  const annotations = Object.entries(objectOf(metadata["annotations"])).filter(
    ([key]) => !key.startsWith(OF_CONTAINER) || names.has(key.slice(key.indexOf("/") + 1)),
  );
  const { os, hostUsers, securityContext } = spec;
  const context = objectOf(securityContext);
  return {
    metadata: { ...metadata, annotations: Object.fromEntries(annotations) },
    spec: { os, hostUsers, ephemeralContainers: added.map((one) => withInherited(one, context)) },
  };
}

function withInherited(container: Json, pod: JsonObject): Json {
  if (!isObject(container)) return container;
  const own = objectOf(container["securityContext"]);
  const inherited = INHERITED.map((field) => [field, own[field] ?? pod[field]]);
  const windowsOptions = { ...objectOf(pod["windowsOptions"]), ...objectOf(own["windowsOptions"]) };
  const securityContext = { ...own, ...Object.fromEntries(inherited), windowsOptions };
  return { ...container, securityContext };
}

function objectOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}
