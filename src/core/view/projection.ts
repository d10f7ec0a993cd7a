import { at, isObject, type Json, type JsonObject, setOwn } from "../json.ts";
import type { Path } from "../path.ts";

/** An object of a policy kind without irrelevant changing fields: status, versions, field managers. */
export function withoutBookkeeping(object: JsonObject): JsonObject {
  const { metadata } = object;
  const noted = isObject(metadata) && NOTES.some((note) => Object.hasOwn(metadata, note));
  // Objects of files have no such fields: nothing is copied, and ten thousand policies are in memory once.
  if (!noted && !Object.hasOwn(object, "status")) return object;
  const { status: _status, ...rest } = object;
  if (!isObject(metadata)) return rest;
  const { managedFields: _fields, resourceVersion: _version, ...kept } = metadata;
  return { ...rest, metadata: kept };
}

const NOTES = ["managedFields", "resourceVersion"] as const;

// The uid distinguishes an object from an earlier one of the same name; deletionTimestamp marks one that is being deleted.
const ALWAYS: readonly Path[] = [
  ["apiVersion"],
  ["kind"],
  ["metadata", "name"],
  ["metadata", "namespace"],
  ["metadata", "uid"],
  ["metadata", "deletionTimestamp"],
];

/** A kept path: the objects that contain it, and its own key. */
interface KeptPlace {
  readonly path: Path;
  readonly parents: readonly string[];
  readonly key: string;
}

/** Reduces objects to the places that modules read: every watch event is reduced, so paths are split once. */
export function projector(
  keep: readonly Path[],
  /** Applied to what is kept. */
  reductions: readonly ((object: JsonObject) => JsonObject)[] = [],
): (object: JsonObject) => JsonObject {
  const places = [...ALWAYS, ...keep].map((path) => ({
    path,
    parents: path.slice(0, -1).map(String),
    key: String(path.at(-1)),
  }));
  if (reductions.length === 0) return (object) => project(object, places);
  return (object) => reductions.reduce((kept, reduce) => reduce(kept), project(object, places));
}

function project(object: JsonObject, places: readonly KeptPlace[]): JsonObject {
  const kept: Record<string, Json | undefined> = {};
  for (const { path, parents, key } of places) {
    const value = at(object, ...path);
    if (value === undefined) continue;
    let here = kept;
    for (const parent of parents) {
      const next = here[parent];
      if (typeof next === "object" && next !== null) here = next as Record<string, Json | undefined>;
      else {
        const made: Record<string, Json | undefined> = {};
        setOwn(here, parent, made);
        here = made;
      }
    }
    // Within a place that is kept as a whole it is there already, and the object is not changed.
    if (here[key] !== value) setOwn(here, key, value);
  }
  return kept;
}

/** What several readers of a resource keep of its objects together. */
export function projectorOf(
  reads: readonly {
    readonly keep: readonly Path[];
    readonly reduce?: (object: JsonObject) => JsonObject;
  }[],
): (object: JsonObject) => JsonObject {
  const reductions = reads.flatMap(({ reduce }) => reduce ?? []);
  return projector(
    reads.flatMap(({ keep }) => keep),
    reductions,
  );
}
