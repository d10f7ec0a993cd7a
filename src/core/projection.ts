import { at, isObject, type Json, type JsonObject, setOwn } from "./json.ts";
import type { Path } from "./path.ts";

/** An object of a policy kind without what changes and means nothing: status, versions, the managers of fields. */
export function withoutBookkeeping(object: JsonObject): JsonObject {
  const { metadata } = object;
  const noted = isObject(metadata) && NOTES.some((note) => Object.hasOwn(metadata, note));
  // Files have none of it: then nothing is copied, and ten thousand policies stand in memory once.
  if (!noted && !Object.hasOwn(object, "status")) return object;
  const { status: _status, ...rest } = object;
  if (!isObject(metadata)) return rest;
  const { managedFields: _fields, resourceVersion: _version, ...kept } = metadata;
  return { ...rest, metadata: kept };
}

const NOTES = ["managedFields", "resourceVersion"] as const;

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
