import { equal, isObject, type Json } from "../../../src/core/json.ts";
import { asNode, type Node, When } from "./node.ts";

/** One variant of an object: under a condition of the template, or by default. */
export interface Variant<T> {
  readonly condition: string | undefined;
  readonly value: T | undefined;
}

/** One template for all variants: their differences are under their conditions. */
export function merge(variants: readonly Variant<Json>[]): Node {
  const present = variants.filter(({ value }) => value !== undefined);
  const values = present.map(({ value }) => value as Json);
  const [first] = values;
  if (first === undefined) throw new Error("nothing to merge");
  if (values.every((value) => equal(value, first))) return asNode(first);
  if (values.every(isObject)) return mergeFields(present as Variant<Record<string, Json>>[]);
  if (values.every(Array.isArray)) return mergeItems(present as Variant<Json[]>[]);
  throw new Error(`a condition can't choose between ${JSON.stringify(values)}`);
}

function mergeFields(variants: readonly Variant<Record<string, Json>>[]): Node {
  const keys = inOrder(variants.map(({ value }) => Object.keys(value ?? {})));
  return Object.fromEntries(
    keys.map((key) => {
      const values = variants.map(({ condition, value }) => ({ condition, value: value?.[key] }));
      return [key, switched(areDifferentLists(values) ? values.map(emptyIfAbsent) : values)];
    }),
  );
}

/** Then each item has its own conditions: one setting may remove some, and another add some. */
function areDifferentLists(variants: readonly Variant<Json>[]): boolean {
  const present = variants.flatMap(({ value }) => (value === undefined ? [] : [value]));
  return present.every(Array.isArray) && present.some((value) => !equal(value, present[0]));
}

function emptyIfAbsent({ condition, value = [] }: Variant<Json>): Variant<Json> {
  return { condition, value };
}

function mergeItems(variants: readonly Variant<Json[]>[]): Node {
  const keyed = variants.map(({ condition, value = [] }) => ({ condition, items: byIdentity(value) }));
  const keys = inOrder(keyed.map(({ items }) => [...items.keys()]));
  return keys.map((key) =>
    switched(keyed.map(({ condition, items }) => ({ condition, value: items.get(key) }))),
  );
}

/** Merged, under the condition that it is there at all. */
export function switched(variants: readonly Variant<Json>[]): Node {
  const node = merge(variants);
  const absent = variants.filter(({ value }) => value === undefined);
  if (absent.length === 0) return node;
  const byDefault = absent.every(({ condition }) => condition !== undefined);
  const deciding = byDefault ? absent : variants.filter(({ value }) => value !== undefined);
  const conditions = [...new Set(deciding.map(({ condition = "" }) => condition))];
  const one =
    conditions.length === 1 ? (conditions[0] ?? "") : `or ${conditions.map((text) => `(${text})`).join(" ")}`;
  return new When(byDefault ? `not (${one})` : one, node);
}

/** Items of a list by identity: a name, else all of it. */
function byIdentity(items: readonly Json[]): Map<string, Json> {
  const found = new Map<string, Json>();
  for (const item of items) {
    const name = isObject(item) && typeof item["name"] === "string" ? item["name"] : JSON.stringify(item);
    if (found.has(name)) throw new Error(`twice in a list: ${name}`);
    found.set(name, item);
  }
  return found;
}

/** All keys, each after the one that it follows at its first occurrence. */
function inOrder(lists: readonly (readonly string[])[]): string[] {
  const all: string[] = [];
  for (const list of lists) {
    let place = 0;
    for (const key of list) {
      const found = all.indexOf(key);
      if (found < 0) all.splice(place, 0, key);
      place = (found < 0 ? place : found) + 1;
    }
  }
  return all;
}
