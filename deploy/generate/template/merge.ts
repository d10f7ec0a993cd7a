import { equal, isObject, type Json } from "../../../src/core/json.ts";
import { asNode, type Node, When } from "./node.ts";

/** One way in which an object may be registered: with these switches, each a condition of a template. None: by default. */
export interface Variant<T> {
  readonly switches: readonly string[];
  readonly value: T | undefined;
}

/**
 * One template for all variants: what differs between them gets the condition under which it is there. The first variant is the default,
 * and every other must differ from it by its own switches alone; `deploy/chart.test.ts` compares combinations with what is registered.
 */
export function merge(variants: readonly Variant<Json>[]): Node {
  const present = variants.filter(({ value }) => value !== undefined);
  const [base] = present;
  if (base?.value === undefined) throw new Error("nothing to merge");
  const values = present.map(({ value }) => value as Json);
  if (values.every((value) => equal(value, base.value as Json))) return asNode(base.value);
  if (values.every(isObject)) return mergeFields(present as Variant<Record<string, Json>>[]);
  if (values.every(Array.isArray)) return mergeItems(present as Variant<Json[]>[]);
  throw new Error(`can't be switched: ${JSON.stringify(values)}`);
}

function mergeFields(variants: readonly Variant<Record<string, Json>>[]): Node {
  const keys = inOrder(variants.map(({ value }) => Object.keys(value ?? {})));
  return Object.fromEntries(
    keys.map((key) => [
      key,
      checked(key, switched(variants.map(({ switches, value }) => ({ switches, value: value?.[key] })))),
    ]),
  );
}

function mergeItems(variants: readonly Variant<Json[]>[]): Node {
  const keyed = variants.map(({ switches, value = [] }) => ({ switches, items: byIdentity(value) }));
  const keys = inOrder(keyed.map(({ items }) => [...items.keys()]));
  return keys.map((key) =>
    switched(keyed.map(({ switches, items }) => ({ switches, value: items.get(key) }))),
  );
}

/** Merged, under the condition that it is there at all. */
export function switched(variants: readonly Variant<Json>[]): Node {
  const node = merge(variants);
  const absent = variants.filter(({ value }) => value === undefined);
  if (absent.length === 0) return node;
  const present = variants.filter(({ value }) => value !== undefined);
  const byDefault = present.some(({ switches }) => switches.length === 0);
  return byDefault
    ? new When(`not (${where(absent, present)})`, node)
    : new When(where(present, absent), node);
}

/** The condition that holds for some variants and not for others. Of `a` and `a` with `b`, the first says it. */
function where(these: readonly Variant<Json>[], others: readonly Variant<Json>[]): string {
  const least = these.filter(
    ({ switches }) =>
      !these.some((one) => one.switches.length < switches.length && isPart(one.switches, switches)),
  );
  const terms = least.map(({ switches }) => {
    const except = others
      .filter((other) => isPart(switches, other.switches))
      .map((other) =>
        join(
          "and",
          other.switches.filter((one) => !switches.includes(one)),
        ),
      );
    return join("and", [...switches, ...(except.length === 0 ? [] : [`not (${join("or", except)})`])]);
  });
  return join("or", [...new Set(terms)]);
}

function isPart(some: readonly string[], all: readonly string[]): boolean {
  return some.every((one) => all.includes(one));
}

function join(word: "and" | "or", conditions: readonly string[]): string {
  const [first = ""] = conditions;
  return conditions.length === 1 ? first : `${word} ${conditions.map((one) => `(${one})`).join(" ")}`;
}

/** Items of a list by what makes two of them the same one: a name, or for a rule all but the names of objects. */
function byIdentity(items: readonly Json[]): Map<string, Json> {
  const found = new Map<string, Json>();
  for (const item of items) {
    const name = identity(item);
    let key = name;
    for (let again = 2; found.has(key); again++) key = `${name} ${again}`;
    found.set(key, item);
  }
  return found;
}

function identity(item: Json): string {
  if (!isObject(item)) return JSON.stringify(item);
  if (typeof item["name"] === "string") return item["name"];
  const { [NAMES]: _names, ...rest } = item;
  return JSON.stringify(rest);
}

/** A rule without names is one for all names: no rule may lose its last name by a condition. */
const NAMES = "resourceNames";

function checked(key: string, node: Node): Node {
  const names = key === NAMES && Array.isArray(node) ? (node as readonly Node[]) : undefined;
  if (names?.every((one) => one instanceof When)) throw new Error("each name of a rule is conditional");
  return node;
}

/** All keys, each after the one that it follows where it is found first. */
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
