import { hash } from "node:crypto";
import type { Origin } from "../decision/draft.ts";
import {
  at,
  canonical,
  holdsAtMost,
  isObject,
  type Json,
  type JsonObject,
  stringAt,
  TOO_DEEP,
  valuesLeft,
} from "../json.ts";

/** The one annotation, on the top object, that records which policy made which change. */
export const PROVENANCE = "usher.dev/provenance";

/** Beside the modules: the version of the stored object that a reapply started from. Stored objects have this key, so it keeps its name. */
const REAPPLIED = "renewedFrom";

/** Beside the modules: the values that policies replaced. */
const WAS = "was";

/**
 * No value that a policy adds to a list comes near this depth (a pod affinity term has 6). An annotation can have
 * 100,000 levels, and JSON.stringify fails before 5,000.
 */
const DEPTH_LIMIT = 32;

/**
 * The number of policies, and of paths and elements, that are read from one annotation. Real objects stay far below; a
 * forged annotation can have twenty thousand, and each would be looked up.
 */
const MAX_ORIGINS = 128;
const MAX_NAMED = 1_024;

/** A pointer to a label of a template has at most some 500 characters. */
const POINTER_LENGTH = 1_024;

/** Longer lists have no provenance: modules extend lists to half of it, and read no longer ones either. */
export const MAX_LIST_LENGTH = 1_024;

/**
 * The total number of values that are read from the lists of one object, and from the elements in its annotation. An
 * object may have ten times as many, and each is serialized to be found; 64 terms of 256 values have as many.
 */
const MAX_LIST_VALUES = 16_384;

/** A place that policies wrote whole. */
export interface Replaced {
  /** The value before the first policy wrote it; absent: there was none. */
  readonly value?: Json;
  /** The digest of the value that policies left. A different value means that another client has changed it since. */
  readonly now: string;
}

/** The content of an object's annotation. */
export interface Provenance {
  readonly origins: readonly Origin[];
  /** By JSON pointer. Objects of an earlier version have none. */
  readonly was: ReadonlyMap<string, Replaced>;
  /** The version of the stored object that a reapply started from: see reapply.ts. */
  readonly reappliedFrom: string | undefined;
}

const NOTHING: Provenance = { origins: [], was: new Map(), reappliedFrom: undefined };

/** Reads the annotation of an object. Anything that is not readable counts as absent: any client can write an annotation. */
export function readProvenance(object: JsonObject | undefined): Provenance {
  const text = annotationOf(object);
  if (text === undefined) return NOTHING;
  let parsed: Json;
  try {
    parsed = JSON.parse(text);
  } catch {
    return NOTHING;
  }
  if (!isObject(parsed)) return NOTHING;
  const room = { left: MAX_NAMED, values: listRoom() };
  return {
    origins: originsIn(parsed, room),
    was: replacedIn(parsed, room),
    reappliedFrom: stringAt(parsed, REAPPLIED),
  };
}

/** The policies' changes to an object, by its annotation. */
export function provenanceOf(object: JsonObject | undefined): readonly Origin[] {
  return readProvenance(object).origins;
}

export function annotationOf(object: JsonObject | undefined): string | undefined {
  return stringAt(object, "metadata", "annotations", PROVENANCE);
}

/** Short, as an annotation has little room. The API server stores empty lists and objects as absent: they have one digest. */
export function digestOf(value: Json | undefined): string {
  if (typeof value === "object" && value !== null && Object.keys(value).length === 0)
    return digestOf(undefined);
  return hash("sha256", canonical(asStored(value)), "hex").slice(0, 16);
}

/** Go drops null members and empty lists of an object: so a manifest and the stored object have the same annotation. */
export function asStored<T extends Json | undefined>(value: T): T | Json {
  if (Array.isArray(value)) return value.map((one) => asStored(one));
  if (!isObject(value)) return value;
  const members = Object.entries(value).filter(
    ([, member]) => member !== null && !(Array.isArray(member) && member.length === 0),
  );
  return Object.fromEntries(members.map(([name, member]) => [name, asStored(member)])) as Json;
}

/** The text of the annotation, in canonical order; `undefined` if it is empty. */
export function annotationText({ origins, was, reappliedFrom }: Provenance): string | undefined {
  const modules: Record<string, Json> = {};
  const byModule = Map.groupBy(origins, ({ module }) => module);
  for (const module of [...byModule.keys()].sort())
    modules[module] = (byModule.get(module) ?? [])
      .sort((a, b) => (a.policy < b.policy ? -1 : 1))
      .map(entryOf);
  if (was.size > 0)
    modules[WAS] = Object.fromEntries(
      [...was].sort(([a], [b]) => (a < b ? -1 : 1)).map(([place, { value, now }]) => [place, { value, now }]),
    );
  if (reappliedFrom !== undefined) modules[REAPPLIED] = reappliedFrom;
  return Object.keys(modules).length === 0 ? undefined : JSON.stringify(modules);
}

function entryOf({ policy, uid, generation, set, added }: Origin): JsonObject {
  const lists = Object.keys(added).sort();
  return {
    policy,
    ...(uid === undefined ? {} : { uid }),
    ...(generation === undefined ? {} : { generation }),
    ...(set.length === 0 ? {} : { set: [...set].sort() }),
    ...(lists.length === 0 ? {} : { added: Object.fromEntries(lists.map((list) => [list, added[list]])) }),
  };
}

function originsIn(parsed: JsonObject, room: Room): Origin[] {
  const origins = new Map<string, OriginParts>();
  for (const module of Object.keys(parsed)) {
    const entries = parsed[module];
    // Any client can write an annotation: a name such as `__proto__` is not a module's.
    if (!Array.isArray(entries) || !/^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/.test(module)) continue;
    for (const entry of entries) {
      const policy = stringAt(entry, "policy");
      if (policy === undefined) continue;
      const key = `${module} ${policy}`;
      if (room.left <= 0 || (origins.size >= MAX_ORIGINS && !origins.has(key))) break;
      const parts = origins.get(key) ?? { module, policy, set: new Set(), added: new Map() };
      origins.set(key, parts);
      addParts(parts, entry, room);
    }
  }
  return [...origins.values()].map(originOf);
}

/** A parsed origin. A policy, a path and an element count once, however often the annotation names them. */
interface OriginParts {
  readonly module: string;
  readonly policy: string;
  uid?: string;
  generation?: number;
  readonly set: Set<string>;
  /** By list, then by canonical text. */
  readonly added: Map<string, Map<string, Json>>;
}

/** The number of places and elements that may still be read of an annotation, and of values of elements. */
interface Room {
  left: number;
  readonly values: ListRoom;
}

/** An empty list, or a repeated one, counts against the limit as well. */
function addParts(parts: OriginParts, entry: Json, room: Room): void {
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
    for (const element of readableElements(listIn(added[list], room), room.values) ?? [])
      elements.set(canonical(element), element);
    parts.added.set(list, elements);
  }
}

/** As many items of a list as the limit allows. */
function listIn(value: Json | undefined, room: Room): readonly Json[] {
  if (!Array.isArray(value)) return [];
  const items = value.slice(0, Math.max(0, room.left));
  room.left -= Math.max(1, items.length);
  return items;
}

function originOf({ set, added, ...rest }: OriginParts): Origin {
  const lists = [...added].map(([list, elements]) => [list, [...elements.values()]] as const);
  return { ...rest, set: [...set], added: Object.fromEntries(lists) };
}

function replacedIn(parsed: JsonObject, room: Room): ReadonlyMap<string, Replaced> {
  const replaced = new Map<string, Replaced>();
  const entries = parsed[WAS];
  if (!isObject(entries)) return replaced;
  for (const place of Object.keys(entries)) {
    if (room.left-- <= 0) break;
    const now = stringAt(entries[place], "now");
    const value = at(entries[place], "value");
    if (now === undefined || !isPointer(place) || !holdsAtMost(value, MAX_LIST_VALUES, DEPTH_LIMIT)) continue;
    replaced.set(place, { ...(value === undefined ? {} : { value }), now });
  }
  return replaced;
}

function isPointer(item: Json): item is string {
  return typeof item === "string" && item.startsWith("/") && item.length <= POINTER_LENGTH;
}

/** Whether a value is of a depth that modules write. */
export function shallow(value: Json | undefined): boolean {
  return valuesLeft(value, Number.POSITIVE_INFINITY, DEPTH_LIMIT) >= 0;
}

/** The number of values that may still be read of the lists of one object. */
export interface ListRoom {
  left: number;
}

export function listRoom(): ListRoom {
  return { left: MAX_LIST_VALUES };
}

/** Whether a value is within the limit, which it then uses. An annotation can name a thousand paths, one inside another. */
export function takesRoom(value: Json | undefined, room: ListRoom): boolean {
  const left = valuesLeft(value, room.left, Number.POSITIVE_INFINITY);
  if (left >= 0) room.left = left;
  return left >= 0;
}

/**
 * The elements of a list that can have provenance: those of a depth that modules write. `undefined` if the list is too
 * long, or its values exceed the limit for one object.
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
