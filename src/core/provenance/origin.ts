import {
  at,
  canonical,
  isObject,
  type Json,
  type JsonObject,
  stringAt,
  TOO_DEEP,
  valuesLeft,
} from "../json.ts";

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

/** A pointer to a label of a template has at most some 500 characters. */
const POINTER_LENGTH = 1_024;

/** Longer lists carry nothing that a note is kept of: modules extend lists to half of it, and read no longer ones either. */
export const MAX_LIST_LENGTH = 1_024;

/**
 * So many values are read of the lists of one object, all told, and of the elements in its note. An object may hold ten times as many,
 * and each is spelled out to be found; 64 terms of 256 values come to as many.
 */
const MAX_LIST_VALUES = 16_384;

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

/** What each object's note said when it was read last: modules ask again and again. Dropping it changes no result. */
const lastRead = new WeakMap<JsonObject, { readonly text: string; readonly origins: readonly Origin[] }>();

/** Reads the annotation of an object; anything that is not ours or not readable is no provenance. */
export function provenanceOf(object: JsonObject | undefined): readonly Origin[] {
  const text = noteOf(object);
  if (object === undefined || text === undefined) return [];
  const known = lastRead.get(object);
  if (known?.text === text) return known.origins;
  const origins = originsIn(text);
  lastRead.set(object, { text, origins });
  return origins;
}

/** The same of an object as it is sent: it is that of the stored one wherever both have one note. */
export function sentProvenance(object: JsonObject, old: JsonObject | undefined): readonly Origin[] {
  return provenanceOf(hasSameNote(object, old) ? old : object);
}

export function hasSameNote(object: JsonObject, old: JsonObject | undefined): boolean {
  return noteOf(object) === noteOf(old);
}

function noteOf(object: JsonObject | undefined): string | undefined {
  return stringAt(object, "metadata", "annotations", PROVENANCE);
}

function originsIn(text: string): Origin[] {
  let parsed: Json;
  try {
    parsed = JSON.parse(text);
  } catch {
    return [];
  }
  if (!isObject(parsed)) return [];
  const origins = new Map<string, OriginParts>();
  const room = { left: MOST_NAMED, values: listRoom() };
  for (const module of Object.keys(parsed)) {
    const entries = parsed[module];
    // Anyone can write an annotation: a name such as `__proto__` is none of our modules.
    if (!Array.isArray(entries) || !/^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/.test(module)) continue;
    for (const entry of entries) {
      const policy = stringAt(entry, "policy");
      if (policy === undefined) continue;
      const key = `${module} ${policy}`;
      if (room.left <= 0 || (origins.size >= MOST_ORIGINS && !origins.has(key))) break;
      const parts = origins.get(key) ?? { module, policy, set: new Set(), added: new Map() };
      origins.set(key, parts);
      addParts(parts, entry, room);
    }
  }
  return [...origins.values()].map(originOf);
}

/** An origin as it is read. A policy, a place and an element count once, however often the note names them. */
interface OriginParts {
  readonly module: string;
  readonly policy: string;
  uid?: string;
  generation?: number;
  readonly set: Set<string>;
  /** By list, then by canonical text. */
  readonly added: Map<string, Map<string, Json>>;
}

/** Elements of notes, which nothing changes: each may be large, and is looked for in several places. Dropping it changes no result. */
const spellings = new WeakMap<object, string>();

/** The canonical text of an element, spelled once where it is a note's. */
export function spelled(element: Json): string {
  const known = typeof element === "object" && element !== null ? spellings.get(element) : undefined;
  return known ?? canonical(element);
}

/** How many more places and elements are read of a note, and values of elements. */
interface NoteRoom {
  left: number;
  readonly values: ListRoom;
}

/** A list of nothing, or of the same again, takes room as well. */
function addParts(parts: OriginParts, entry: Json, room: NoteRoom): void {
  const uid = stringAt(entry, "uid");
  const generation = at(entry, "generation");
  if (uid !== undefined) parts.uid = uid;
  if (Number.isSafeInteger(generation)) parts.generation = Number(generation);
  for (const place of listIn(at(entry, "set"), room)) if (isPointer(place)) parts.set.add(place);
  const added = at(entry, "added");
  if (!isObject(added)) return;
  for (const list of Object.keys(added)) {
    if (room.left <= 0) return;
    if (!isPointer(list) || !Array.isArray(added[list])) continue;
    const elements = parts.added.get(list) ?? new Map<string, Json>();
    for (const element of readableElements(listIn(added[list], room), room.values) ?? []) {
      const text = canonical(element);
      elements.set(text, element);
      if (typeof element === "object" && element !== null) spellings.set(element, text);
    }
    parts.added.set(list, elements);
  }
}

/** As many items of a list as there is room for. */
function listIn(value: Json | undefined, room: NoteRoom): readonly Json[] {
  if (!Array.isArray(value)) return [];
  const items = value.slice(0, Math.max(0, room.left));
  room.left -= Math.max(1, items.length);
  return items;
}

function originOf({ set, added, ...rest }: OriginParts): Origin {
  const lists = [...added].map(([list, elements]) => [list, [...elements.values()]] as const);
  return { ...rest, set: [...set], added: Object.fromEntries(lists) };
}

/**
 * From which version of the stored object this one was written anew. It is only true of the update that leads away from that version;
 * a client that writes it requests a reapply, as every client may.
 */
export function renewedFrom(object: JsonObject | undefined): string | undefined {
  const text = noteOf(object);
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
  return typeof item === "string" && item.startsWith("/") && item.length <= POINTER_LENGTH;
}

/** Whether a value is of a depth that a note is kept of. */
export function shallow(value: Json | undefined): boolean {
  return valuesLeft(value, Number.POSITIVE_INFINITY, DEPTH_LIMIT) >= 0;
}

/** How much more is read of the lists of one object. */
export interface ListRoom {
  left: number;
}

export function listRoom(): ListRoom {
  return { left: MAX_LIST_VALUES };
}

/**
 * The elements of a list that a note is kept of: those of a depth that modules write. `undefined` where the list is too long, or its
 * values are more than are read of one object.
 */
export function readableElements(list: Json | undefined, room: ListRoom): readonly Json[] | undefined {
  if (!Array.isArray(list)) return [];
  if (list.length > MAX_LIST_LENGTH) return undefined;
  const elements: Json[] = [];
  let { left } = room;
  for (const element of list) {
    const after = valuesLeft(element, left, DEPTH_LIMIT);
    if (after === TOO_DEEP) continue;
    if (after < 0) return undefined;
    left = after;
    elements.push(element);
  }
  room.left = left;
  return elements;
}
