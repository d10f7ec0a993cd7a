import { at, equal, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import type { Shape } from "./resources.ts";

/** Field managers, as metadata.managedFields records them: which manager set which field, and server-side apply. */

/** A set of paths, by elements as in FieldsV1: `f:data`, `k:{"name":"a"}`, `v:"x"`. */
interface FieldSet {
  own: boolean;
  readonly parts: Map<string, FieldSet>;
}

interface Entry {
  readonly manager: string;
  readonly operation: "Apply" | "Update";
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string;
  readonly fields: FieldSet;
}

export interface Writer {
  readonly manager: string;
  readonly apiVersion: string;
  readonly subresource: string;
  readonly time: string;
  readonly shape: Shape;
  /** Fields that this endpoint does not write, such as `status`. */
  readonly ignores: readonly (readonly string[])[];
  /** Fields that an object of this kind has from the start, because its Go type has them. */
  readonly initial: JsonObject;
}

/** A field that another manager has set to another value. */
interface Conflict {
  readonly manager: string;
  readonly operation: string;
  readonly field: string;
}

/** Never owned: the API server sets them, or they name the object. */
const UNOWNED = [
  ["apiVersion"],
  ["kind"],
  ...["name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "resourceVersion"].map(
    (name) => ["metadata", name],
  ),
  ["metadata", "managedFields"],
];

/** The object with managedFields after a write that is not an apply. */
export function withUpdate(live: JsonObject | undefined, object: JsonObject, writer: Writer): JsonObject {
  // A client may clear the record by an empty list; an absent one changes nothing.
  const sent = at(object, "metadata", "managedFields");
  const reset = Array.isArray(sent) && sent.length === 0 && live !== undefined;
  const entries = decode(live);
  // An object without a record gets one by its next apply.
  if (reset || (live !== undefined && entries.length === 0)) return withEntries(object, []);
  const base = live ?? writer.initial;
  const changes = compare(base, object, writer);
  const others = released(entries, changes, (entry) => isBy(entry, writer, "Update"));
  const own = entries.find((entry) => isBy(entry, writer, "Update"));
  const before = own?.fields ?? emptySet();
  const fields = union(union(difference(before, changes.removed), changes.modified), changes.added);
  const mine: Entry = { ...identity(writer, "Update"), fields, time: changedTime(own, fields, writer.time) };
  return withEntries(object, isEmpty(fields) ? others : [...others, mine]);
}

/** Server-side apply: the merged object, or the conflicts with other managers. */
export function withApply(
  live: JsonObject | undefined,
  config: JsonObject,
  writer: Writer,
  force: boolean,
): { readonly object: JsonObject } | { readonly conflicts: readonly Conflict[] } {
  const { shape, ignores } = writer;
  const entries = decode(live);
  if (live !== undefined && entries.length === 0) entries.push(...beforeFirstApply(live, writer));
  const own = entries.find((entry) => isBy(entry, writer, "Apply"));
  const wanted = without(config, [...UNOWNED, ...ignores]);
  const fields = owned(setOf(wanted, shape, []));
  const base = live ?? writer.initial;
  const merged = merge(base, without(config, ignores), shape, []) as JsonObject;
  const others = entries.filter((entry) => entry !== own);
  const all = [...others.map((entry) => entry.fields), fields].reduce(union, emptySet());
  const object = prune(merged, difference(own?.fields ?? emptySet(), all), all, shape, []) as JsonObject;
  const changes = compare(base, object, writer);
  const changed = union(changes.modified, changes.added);
  const conflicts = others.flatMap((entry) =>
    paths(intersection(entry.fields, changed)).map((field) => ({
      manager: entry.manager,
      operation: entry.operation,
      field,
    })),
  );
  if (conflicts.length > 0 && !force) return { conflicts };
  const kept = released(others, changes, () => false);
  const mine: Entry = { ...identity(writer, "Apply"), fields, time: changedTime(own, fields, writer.time) };
  return { object: withEntries(object, isEmpty(fields) ? kept : [...kept, mine]) };
}

/** The owner of all fields of an object that has no record. */
function beforeFirstApply(live: JsonObject, writer: Writer): Entry[] {
  const fields = compare(writer.initial, live, writer).added;
  const { apiVersion, time } = writer;
  const entry = { manager: "before-first-apply", apiVersion, subresource: "", time, fields };
  return isEmpty(fields) ? [] : [{ ...entry, operation: "Update" }];
}

/** Entries of other managers without the fields that were changed or removed. */
function released(entries: readonly Entry[], changes: Changes, isWriter: (entry: Entry) => boolean): Entry[] {
  const lost = union(union(changes.modified, changes.added), changes.removed);
  return entries
    .filter((entry) => !isWriter(entry))
    .map((entry) =>
      isEmpty(intersection(entry.fields, lost))
        ? entry
        : { ...entry, fields: difference(entry.fields, lost) },
    )
    .filter((entry) => !isEmpty(entry.fields));
}

function identity({ manager, apiVersion, subresource }: Writer, operation: Entry["operation"]) {
  return { manager, operation, apiVersion, subresource };
}

function isBy(entry: Entry, writer: Writer, operation: string): boolean {
  return (
    entry.manager === writer.manager &&
    entry.operation === operation &&
    entry.subresource === writer.subresource &&
    entry.apiVersion === writer.apiVersion
  );
}

function changedTime(before: Entry | undefined, fields: FieldSet, time: string): string {
  return before !== undefined && equal(encodeSet(before.fields), encodeSet(fields)) ? before.time : time;
}

function decode(object: JsonObject | undefined): Entry[] {
  return listAt(object, "metadata", "managedFields").map((entry) => ({
    manager: stringAt(entry, "manager") ?? "",
    operation: stringAt(entry, "operation") === "Apply" ? "Apply" : "Update",
    apiVersion: stringAt(entry, "apiVersion") ?? "",
    subresource: stringAt(entry, "subresource") ?? "",
    time: stringAt(entry, "time") ?? "",
    fields: decodeSet(at(entry, "fieldsV1")),
  }));
}

function withEntries(object: JsonObject, entries: readonly Entry[]): JsonObject {
  const order = (entry: Entry) =>
    [entry.operation, entry.time, entry.manager, entry.apiVersion, entry.subresource].join(" ");
  const managedFields = [...entries]
    .sort((a, b) => (order(a) < order(b) ? -1 : 1))
    .map(({ manager, operation, apiVersion, subresource, time, fields }) => ({
      manager,
      operation,
      apiVersion,
      time,
      fieldsType: "FieldsV1",
      fieldsV1: encodeSet(fields),
      ...(subresource === "" ? {} : { subresource }),
    }));
  const { managedFields: _before, ...metadata } = (object["metadata"] ?? {}) as JsonObject;
  return { ...object, metadata: { ...metadata, ...(managedFields.length === 0 ? {} : { managedFields }) } };
}

// Sets of paths.

function emptySet(own = false): FieldSet {
  return { own, parts: new Map() };
}

/** Stored sets are not changed, and most of them stay as they are from write to write. */
const decodedSets = new WeakMap<object, FieldSet>();
const encodedSets = new WeakMap<FieldSet, JsonObject>();

function decodeSet(fields: Json | undefined): FieldSet {
  const known = isObject(fields) ? decodedSets.get(fields) : undefined;
  if (known !== undefined) return known;
  const set = emptySet();
  if (!isObject(fields)) return set;
  decodedSets.set(fields, set);
  if (Object.isFrozen(fields)) encodedSets.set(set, fields);
  for (const [part, inner] of Object.entries(fields)) {
    if (part === ".") set.own = true;
    else {
      const child = decodeSet(inner);
      if (child.parts.size === 0) child.own = true;
      set.parts.set(part, child);
    }
  }
  return set;
}

function encodeSet(set: FieldSet): JsonObject {
  const known = encodedSets.get(set);
  if (known !== undefined) return known;
  const fields: Record<string, Json> = {};
  if (set.own && set.parts.size > 0) fields["."] = {};
  for (const [part, inner] of [...set.parts].sort(([a], [b]) => (a < b ? -1 : 1)))
    fields[part] = encodeSet(inner);
  return fields;
}

function isEmpty(set: FieldSet): boolean {
  return !set.own && [...set.parts.values()].every(isEmpty);
}

function combine(a: FieldSet, b: FieldSet, keep: (a: boolean, b: boolean) => boolean): FieldSet {
  const result = emptySet(keep(a.own, b.own));
  for (const part of new Set([...a.parts.keys(), ...b.parts.keys()])) {
    const inner = combine(a.parts.get(part) ?? emptySet(), b.parts.get(part) ?? emptySet(), keep);
    if (!isEmpty(inner)) result.parts.set(part, inner);
  }
  return result;
}

const union = (a: FieldSet, b: FieldSet): FieldSet => combine(a, b, (x, y) => x || y);
const difference = (a: FieldSet, b: FieldSet): FieldSet => combine(a, b, (x, y) => x && !y);
const intersection = (a: FieldSet, b: FieldSet): FieldSet => combine(a, b, (x, y) => x && y);

/** As messages name fields: `.data.a`, `.webhooks[name="x"].rules`. Fields of one level come before those within. */
function paths(set: FieldSet, prefix = ""): string[] {
  const parts = [...set.parts].sort(([a], [b]) => (a < b ? -1 : 1));
  const names = parts.filter(([, child]) => child.own).map(([part]) => prefix + describePart(part));
  return [...names, ...parts.flatMap(([part, child]) => paths(child, prefix + describePart(part)))];
}

function describePart(part: string): string {
  const text = part.slice(2);
  if (part.startsWith("f:")) return `.${text}`;
  if (part.startsWith("v:")) return `[=${text}]`;
  const keys = Object.entries(JSON.parse(text) as Record<string, Json>);
  return `[${keys.map(([key, value]) => `${key}=${JSON.stringify(value)}`).join(",")}]`;
}

// Values.

/** The elements of a list that is not one value, by their path elements; `undefined` for all other values. */
function elements(
  value: Json | undefined,
  shape: Shape,
  path: readonly string[],
): Map<string, Json> | undefined {
  const type = shape(path);
  if (isObject(value))
    return type === "atomic"
      ? undefined
      : new Map(
          Object.entries(value).flatMap(([key, one]) => (one === undefined ? [] : [[`f:${key}`, one]])),
        );
  if (!Array.isArray(value) || type === "atomic" || type === "granular") return undefined;
  return new Map(
    value.map((item: Json) => [type === "set" ? `v:${JSON.stringify(item)}` : keyOf(item, type), item]),
  );
}

function keyOf(item: Json, keys: readonly string[]): string {
  const defaults: Readonly<Record<string, Json>> = { protocol: "TCP" };
  const named = [...keys].sort().map((key) => [key, at(item, key) ?? defaults[key] ?? null]);
  return `k:${JSON.stringify(Object.fromEntries(named))}`;
}

function step(path: readonly string[], part: string): string[] {
  return [...path, part.startsWith("f:") ? part.slice(2) : "*"];
}

function setOf(value: Json, shape: Shape, path: readonly string[]): FieldSet {
  const inner = elements(value, shape, path);
  // An empty map is owned as a value, an empty list of elements is not.
  if (inner === undefined || (inner.size === 0 && isObject(value))) return emptySet(true);
  const set = emptySet();
  for (const [part, one] of inner) {
    const child = setOf(one, shape, step(path, part));
    if (!part.startsWith("f:")) child.own = true;
    set.parts.set(part, child);
  }
  return set;
}

/** No manager owns the object itself or its metadata as a whole. */
function owned(set: FieldSet): FieldSet {
  set.own = false;
  const metadata = set.parts.get("f:metadata");
  if (metadata !== undefined) metadata.own = false;
  return difference(set, emptySet());
}

interface Changes {
  readonly added: FieldSet;
  readonly removed: FieldSet;
  readonly modified: FieldSet;
}

function compare(before: JsonObject, after: JsonObject, { shape, ignores }: Writer): Changes {
  const skipped = [...UNOWNED, ...ignores];
  const { added, removed, modified } = compareValues(
    without(before, skipped),
    without(after, skipped),
    shape,
    [],
  );
  return { added: owned(added), removed: owned(removed), modified: owned(modified) };
}

function compareValues(
  before: Json | undefined,
  after: Json | undefined,
  shape: Shape,
  path: readonly string[],
): Changes {
  const changes = { added: emptySet(), removed: emptySet(), modified: emptySet() };
  if (before === after) return changes;
  // A null that replaces a map or a list has lost its elements, no more.
  const inner = (value: Json | undefined, other: Json | undefined) =>
    value === null && elements(other, shape, path) !== undefined
      ? new Map<string, Json>()
      : elements(value, shape, path);
  const old = inner(before, after);
  const now = inner(after, before);
  if (before === undefined) changes.added.own = true;
  else if (after === undefined) changes.removed.own = true;
  else if ((old === undefined || now === undefined) && !equal(before, after)) changes.modified.own = true;
  const isLeaf = (before !== undefined && old === undefined) || (after !== undefined && now === undefined);
  if (isLeaf) return changes;
  for (const part of new Set([...(old?.keys() ?? []), ...(now?.keys() ?? [])])) {
    const inner = compareValues(old?.get(part), now?.get(part), shape, step(path, part));
    for (const what of ["added", "removed", "modified"] as const)
      if (!isEmpty(inner[what])) changes[what].parts.set(part, inner[what]);
  }
  return changes;
}

function merge(live: Json | undefined, config: Json, shape: Shape, path: readonly string[]): Json {
  const before = elements(live, shape, path);
  const wanted = elements(config, shape, path);
  if (before === undefined || wanted === undefined) return config;
  const result = new Map<string, Json>();
  for (const part of mergedOrder([...before.keys()], [...wanted.keys()])) {
    const one = wanted.get(part);
    const old = before.get(part);
    result.set(part, one === undefined ? (old ?? null) : merge(old, one, shape, step(path, part)));
  }
  return rebuilt(result, Array.isArray(config));
}

/** The order of the applied list, with elements of others where they were. */
function mergedOrder(before: readonly string[], wanted: readonly string[]): string[] {
  const order: string[] = [];
  const shared = wanted.filter((part) => before.includes(part));
  let [i, j, next] = [0, 0, 0];
  while (i < before.length || j < wanted.length) {
    const [old, one] = [before[i], wanted[j]];
    const isShared = old !== undefined && wanted.includes(old);
    if (old !== undefined && (!isShared || old !== shared[next])) {
      if (!isShared) order.push(old);
      i += 1;
    } else if (one === undefined) i += 1;
    else {
      order.push(one);
      if (one === shared[next]) next += 1;
      if (one === old) i += 1;
      j += 1;
    }
  }
  return order;
}

function rebuilt(parts: ReadonlyMap<string, Json>, isList: boolean): Json {
  return isList
    ? [...parts.values()]
    : Object.fromEntries([...parts].map(([part, value]) => [part.slice(2), value]));
}

/**
 * Removes fields that the manager no longer applies and that no manager owns. A map of which the manager has applied a
 * part, and of which no manager owns one, goes as a whole, with its defaults. An element of a list goes if no manager
 * owns the element itself. A map or list that becomes empty is null.
 */
function prune(
  value: Json,
  gone: FieldSet,
  owned: FieldSet,
  shape: Shape,
  path: readonly string[],
): Json | undefined {
  const inner = elements(value, shape, path);
  if (inner === undefined || isEmpty(gone)) return value;
  const result = new Map<string, Json>();
  for (const [part, one] of inner) {
    const lost = gone.parts.get(part) ?? emptySet();
    const kept = owned.parts.get(part) ?? emptySet();
    const isField = part.startsWith("f:");
    // The name of the object is always applied, so that its metadata stays.
    const isMetadata = path.length === 0 && part === "f:metadata";
    if (isField ? !isMetadata && !isEmpty(lost) && isEmpty(kept) : lost.own) continue;
    const here = step(path, part);
    // Empty lists are fields of no manager: a map that is owned without a field, and has one, goes as well.
    const hasEmptyList = (value: Json): boolean =>
      [...(elements(value, shape, here) ?? [])].some(([inside, it]) =>
        isEmpty(setOf(it, shape, step(here, inside))),
      );
    if (!isMetadata && !isEmpty(lost) && kept.parts.size === 0 && hasEmptyList(one)) continue;
    const left = prune(one, lost, kept, shape, here);
    if (left !== undefined) result.set(part, left);
  }
  if (result.size > 0 || inner.size === 0 || path.length === 0) return rebuilt(result, Array.isArray(value));
  return isEmpty(owned) ? undefined : null;
}

function without(object: JsonObject, skipped: readonly (readonly string[])[]): JsonObject {
  let result: JsonObject = object;
  for (const [first = "", second] of skipped) {
    const inner = result[first];
    if (second === undefined) {
      const { [first]: _removed, ...rest } = result;
      result = rest;
    } else if (isObject(inner) && second in inner) {
      const { [second]: _removed, ...rest } = inner;
      result = { ...result, [first]: rest };
    }
  }
  return result;
}
