import { at, isObject, type Json, type JsonObject, stringAt } from "../json.ts";

/** The one annotation, on the top object, that says which policy put what there. */
export const PROVENANCE = "usher.dev/provenance";

/** Beside the modules, in the note of an object that was written anew: the version of the stored one that it was made from. */
const RENEWED = "renewedFrom";

/**
 * No value that a policy adds to a list comes near this depth (a pod affinity term has 6). An annotation has room for 100,000
 * levels, and JSON.stringify gives up before 5,000.
 */
const DEPTH_LIMIT = 32;

/**
 * So many policies are read of one note, and so many places and elements. That more put something into one object hardly happens;
 * whereas a note that somebody wrote himself has room for twenty thousand, each of which would be looked for.
 */
const MOST_ORIGINS = 128;
const MOST_NAMED = 1_024;

/** What one policy put into an object. */
export interface Origin {
  readonly module: string;
  /** `ClusterPodSchedulingPolicy/etcd-pool` */
  readonly policy: string;
  readonly uid?: string;
  readonly generation?: number;
  /** Places that were set, as JSON pointers. */
  readonly set: readonly string[];
  /** List elements that were added, by the list's pointer. An index would not survive other people's edits. */
  readonly added: Readonly<Record<string, readonly Json[]>>;
}

/** Reads the annotation of an object; anything that is not ours or not readable is no provenance. */
export function provenanceOf(object: JsonObject | undefined): Origin[] {
  const text = stringAt(object, "metadata", "annotations", PROVENANCE);
  if (text === undefined) return [];
  let parsed: Json;
  try {
    parsed = JSON.parse(text);
  } catch {
    return [];
  }
  if (!isObject(parsed)) return [];
  const origins: Origin[] = [];
  const room: Room = { left: MOST_NAMED };
  for (const module of Object.keys(parsed)) {
    const entries = parsed[module];
    // Anyone can write an annotation: a name such as `__proto__` is none of our modules.
    if (!Array.isArray(entries) || !/^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/.test(module)) continue;
    for (const entry of entries) {
      const policy = stringAt(entry, "policy");
      if (policy === undefined || room.left <= 0 || origins.length >= MOST_ORIGINS) continue;
      const uid = stringAt(entry, "uid");
      const generation = at(entry, "generation");
      const set = at(entry, "set");
      const added = at(entry, "added");
      origins.push({
        module,
        policy,
        ...(uid === undefined ? {} : { uid }),
        ...(Number.isSafeInteger(generation) ? { generation: Number(generation) } : {}),
        set: Array.isArray(set) ? limited(set.filter(isPointer), room) : [],
        added: isObject(added) ? listsOf(added, room) : {},
      });
    }
  }
  return origins;
}

/**
 * From which version of the stored object this one was written anew. It is only true of the update that leads away from that version;
 * a client that writes it requests a reapply, as every client may.
 */
export function renewedFrom(object: JsonObject | undefined): string | undefined {
  const text = stringAt(object, "metadata", "annotations", PROVENANCE);
  if (text === undefined || !text.includes(RENEWED)) return undefined;
  try {
    return stringAt(JSON.parse(text), RENEWED);
  } catch {
    return undefined;
  }
}

/** The note with that mark; without one it is the note itself. */
export function noteFrom(modules: Readonly<Record<string, Json>>, version: string | undefined): string {
  return JSON.stringify(version === undefined ? modules : { ...modules, [RENEWED]: version });
}

/** A note without that mark, as it would be written; what can't be read says nothing. */
export function bareNote(text: string | undefined): string {
  if (text === undefined) return "{}";
  if (!text.includes(RENEWED)) return text;
  try {
    const { [RENEWED]: _mark, ...modules } = JSON.parse(text);
    return JSON.stringify(modules);
  } catch {
    return text;
  }
}

function isPointer(item: Json): item is string {
  return typeof item === "string" && item.startsWith("/");
}

interface Room {
  left: number;
}

/** As many of these as there is room for. */
function limited<Item>(items: readonly Item[], room: Room): readonly Item[] {
  const some = items.slice(0, Math.max(0, room.left));
  // One that names nothing takes room as well.
  room.left -= Math.max(1, some.length);
  return some;
}

function listsOf(added: JsonObject, room: Room): Record<string, readonly Json[]> {
  const lists: Record<string, readonly Json[]> = {};
  for (const key of Object.keys(added)) {
    const list = added[key];
    if (Array.isArray(list) && isPointer(key)) lists[key] = limited(list.filter(shallow), room);
  }
  return lists;
}

/** Whether a value is of a depth that a note is kept of. */
export function shallow(value: Json | undefined): boolean {
  return within(value, DEPTH_LIMIT);
}

function within(value: Json | undefined, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((inner) => within(inner, depth - 1));
}
