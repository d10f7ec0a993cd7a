import { at, type Json, type JsonObject, setOwn } from "./json.ts";
import type { Path } from "./path.ts";

/** An object of a policy kind without what changes and means nothing: status, versions, the managers of fields. */
export function withoutBookkeeping(object: JsonObject): JsonObject {
  const { status: _status, metadata, ...rest } = object;
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata)) return rest;
  const { managedFields: _fields, resourceVersion: _version, ...kept } = metadata as JsonObject;
  return { ...rest, metadata: kept };
}

// The name is always known; the uid and the deletion mark tell an object from its namesake and the living from the dying.
const ALWAYS: readonly Path[] = [
  ["apiVersion"],
  ["kind"],
  ["metadata", "name"],
  ["metadata", "namespace"],
  ["metadata", "uid"],
  ["metadata", "deletionTimestamp"],
];

/** An object reduced to the places that someone reads. */
export function project(object: JsonObject, keep: readonly Path[]): JsonObject {
  const kept: Record<string, Json | undefined> = {};
  for (const path of [...ALWAYS, ...keep]) {
    const value = at(object, ...path);
    if (value === undefined) continue;
    let here: Record<string, Json | undefined> = kept;
    for (const step of path.slice(0, -1)) {
      const next = here[String(step)];
      const inner = (typeof next === "object" && next !== null ? next : {}) as Record<
        string,
        Json | undefined
      >;
      setOwn(here, String(step), inner);
      here = inner;
    }
    setOwn(here, String(path.at(-1)), value);
  }
  return kept;
}
