import type { JsonObject } from "../json.ts";

/** A label that an object must have for a policy to select it: with one of some values, or with any. */
export interface RequiredLabel {
  /** The object of the labels: `pod`, `namespace`, … Each has its own keys. */
  readonly of: string;
  readonly key: string;
  /** `undefined`: any value will do. */
  readonly values: readonly string[] | undefined;
}

interface Shelf<Item> {
  readonly values: Map<string, Set<Item>>;
  readonly any: Set<Item>;
}

/** Stands for "any value" in counts of required labels. No label value contains a space, so it is unambiguous. */
const ANY = " ";

/**
 * Finds the few policies that may select an object, without trying each. Every policy is indexed by the rarest of its
 * required labels, so that thousands that share a common label (`app=etcd`) are not found together; those without a
 * required label are always candidates. The results are candidates: the caller matches them exactly.
 */
export class SelectorIndex<Item extends { readonly requiredLabels: readonly RequiredLabel[] }> {
  readonly #shelves = new Map<string, Map<string, Shelf<Item>>>();
  readonly #always = new Set<Item>();
  readonly #anchored = new Map<string, Set<Item>>();
  /** Under which label each item is indexed. */
  readonly #places = new Map<Item, RequiredLabel | undefined>();
  /** How often each label is required: kinds of labels, then keys, then values. */
  readonly #frequencies = new Map<string, Map<string, Map<string, number>>>();

  constructor(items: readonly Item[]) {
    for (const { requiredLabels } of items) this.#count(requiredLabels, 1);
    for (const item of items) this.#file(item);
  }

  add(item: Item): void {
    this.#count(item.requiredLabels, 1);
    this.#file(item);
  }

  remove(item: Item): void {
    if (!this.#places.has(item)) return;
    this.#count(item.requiredLabels, -1);
    const anchor = this.#places.get(item);
    this.#places.delete(item);
    if (anchor === undefined) {
      this.#always.delete(item);
      return;
    }
    this.#anchored.get(anchor.of)?.delete(item);
    const keys = this.#shelves.get(anchor.of);
    const shelf = keys?.get(anchor.key);
    if (shelf === undefined) return;
    for (const value of anchor.values ?? []) {
      const items = shelf.values.get(value);
      if (items?.delete(item) && items.size === 0) shelf.values.delete(value);
    }
    if (anchor.values === undefined) shelf.any.delete(item);
    if (shelf.any.size === 0 && shelf.values.size === 0) keys?.delete(anchor.key);
  }

  get size(): number {
    return this.#places.size;
  }

  /** Every item in the index. */
  get items(): Iterable<Item> {
    return this.#places.keys();
  }

  /** Every item that may select an object with these labels, each once. */
  candidates(labels: Readonly<Record<string, JsonObject | undefined>>): Item[] {
    const found = [...this.#always];
    for (const [of, keys] of this.#shelves) {
      const carried = labels[of];
      if (carried === undefined) continue;
      for (const key of Object.keys(carried)) {
        const shelf = keys.get(key);
        if (shelf === undefined) continue;
        const value = carried[key];
        const matching = typeof value === "string" ? shelf.values.get(value) : undefined;
        if (matching !== undefined) for (const item of matching) found.push(item);
        for (const item of shelf.any) found.push(item);
      }
    }
    return found;
  }

  /** The items that are indexed by only one kind of labels: all of them are candidates if those labels are unknown. */
  anchoredOn(of: string): Iterable<Item> {
    return this.#anchored.get(of) ?? [];
  }

  #file(item: Item): void {
    const anchor = this.#rarest(item.requiredLabels);
    this.#places.set(item, anchor);
    if (anchor === undefined) {
      this.#always.add(item);
      return;
    }
    const { of, key, values } = anchor;
    const shelf = entry(entry(this.#shelves, of, newMap), key, newShelf) as Shelf<Item>;
    if (values === undefined) shelf.any.add(item);
    else for (const value of values) entry(shelf.values, value, newSet).add(item);
    entry(this.#anchored, of, newSet).add(item);
  }

  #count(requiredLabels: readonly RequiredLabel[], by: 1 | -1): void {
    for (const { of, key, values } of requiredLabels) {
      const keys = entry(this.#frequencies, of, newMap<string, Map<string, number>>);
      const counts = entry(keys, key, newMap<string, number>);
      for (const value of values ?? [ANY]) {
        const count = (counts.get(value) ?? 0) + by;
        if (count > 0) counts.set(value, count);
        else counts.delete(value);
      }
      // Keys are added and removed with policies over months; an empty table for each former one would add up.
      if (counts.size === 0) keys.delete(key);
    }
  }

  #rarest(requiredLabels: readonly RequiredLabel[]): RequiredLabel | undefined {
    if (requiredLabels.length <= 1) return requiredLabels[0];
    let best: RequiredLabel | undefined;
    let bestCount = Number.POSITIVE_INFINITY;
    for (const label of requiredLabels) {
      const counts = this.#frequencies.get(label.of)?.get(label.key);
      // "Any value" is met by every object with that key: as common as a label gets.
      let count = label.values === undefined ? 1_000_000 : 0;
      for (const value of label.values ?? [ANY]) count = Math.max(count, counts?.get(value) ?? 0);
      if (count < bestCount) {
        best = label;
        bestCount = count;
      }
    }
    return best;
  }
}

function entry<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const known = map.get(key);
  if (known !== undefined) return known;
  const made = make();
  map.set(key, made);
  return made;
}

const newMap = <Key, Value>() => new Map<Key, Value>();
const newSet = <Item>() => new Set<Item>();
const newShelf = <Item>(): Shelf<Item> => ({ values: new Map(), any: new Set() });
