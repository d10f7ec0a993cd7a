import { isObject, type Json, type JsonObject, textOf } from "../../../core/json.ts";
import type { Path } from "../../../core/path.ts";

/**
 * A pod as the checks read it: the three lists of containers as one, in the order of upstream. Field names are fixed, so
 * plain member access is safe on parsed JSON. A list or an element of the wrong type counts as a container or a volume
 * that sets nothing: it satisfies no requirement.
 */
export interface CheckedPod {
  readonly metadata: JsonObject;
  readonly spec: JsonObject;
  /** Of the pod. */
  readonly context: JsonObject;
  readonly containers: readonly JsonObject[];
  /** Of each container. */
  readonly contexts: readonly JsonObject[];
  /** The number of init containers, and of init and main containers together. */
  readonly initEnd: number;
  readonly mainEnd: number;
  readonly volumes: readonly JsonObject[];
}

const EMPTY: JsonObject = Object.freeze({});
const NONE: readonly JsonObject[] = Object.freeze([]);
const MALFORMED: readonly JsonObject[] = Object.freeze([EMPTY]);

export function checkedPod(metadata: JsonObject | undefined, spec: JsonObject | undefined): CheckedPod {
  const read = objectOf(spec);
  const init = elements(read["initContainers"]);
  const main = elements(read["containers"]);
  const ephemeral = elements(read["ephemeralContainers"]);
  const containers = init.length === 0 && ephemeral.length === 0 ? main : [...init, ...main, ...ephemeral];
  const contexts: JsonObject[] = [];
  for (let i = 0; i < containers.length; i++) contexts.push(objectOf(containers[i]?.["securityContext"]));
  return {
    metadata: objectOf(metadata),
    spec: read,
    context: objectOf(read["securityContext"]),
    containers,
    contexts,
    initEnd: init.length,
    mainEnd: init.length + main.length,
    volumes: elements(read["volumes"]),
  };
}

export function objectOf(value: Json | undefined): JsonObject {
  return isObject(value) ? value : EMPTY;
}

/** The objects in a list. */
export function elements(value: Json | undefined): readonly JsonObject[] {
  if (value === undefined || value === null) return NONE;
  if (!Array.isArray(value)) return MALFORMED;
  for (let i = 0; i < value.length; i++) if (!isObject(value[i])) return value.map(objectOf);
  return value as readonly JsonObject[];
}

/** Go decodes null as the absent value. */
export function isSet(value: Json | undefined): value is Exclude<Json, null> {
  return value !== undefined && value !== null;
}

/** A value in a detail, as Go decodes it: empty if absent, U+FFFD for a lone surrogate. */
export function shown(value: Json | undefined): string {
  return isSet(value) ? textOf(value).toWellFormed() : "";
}

export function nameOf(object: JsonObject | undefined): string {
  return shown(object?.["name"]);
}

/** The path of the i-th of all containers. */
export function containerPath(pod: CheckedPod, index: number, ...below: Path): Path {
  if (index < pod.initEnd) return ["spec", "initContainers", index, ...below];
  if (index < pod.mainEnd) return ["spec", "containers", index - pod.initEnd, ...below];
  return ["spec", "ephemeralContainers", index - pod.mainEnd, ...below];
}
