import { canonical, isObject, type Json, type JsonObject } from "../../../../core/json.ts";
import { listRoom, readableElements, shallow } from "../../../../core/provenance/origin.ts";
import type { WorkBudget } from "../../merge/work-budget.ts";

/** How elements of a list are told apart. */
export interface Elements {
  /** One text for one meaning: elements that mean the same have the same text. */
  readonly meaning: (element: Json) => string;
  /** Elements with the same key exclude each other in a pod, unless they mean the same. */
  readonly key?: (element: Json) => string;
}

/** The same of one element. */
export interface ElementTexts {
  readonly meaning: string;
  readonly key: string | undefined;
}

/** The lists of one object, each read once for all policies that add to it. */
export class KnownLists {
  readonly #lists = new Map<Elements, KnownList>();
  /** Lists that are too large to be read. */
  readonly #unreadable = new Set<readonly Json[]>();
  readonly #ranks = new Map<Elements, ReadonlyMap<string, number> | undefined>();
  readonly #covered = new Map<Elements, (element: JsonObject) => boolean>();
  readonly #removed = new Map<Elements, ReadonlySet<string>>();

  /** The position of each element in the stored list: the same for all policies that are merged together. */
  ranks(
    list: Elements,
    read: () => ReadonlyMap<string, number> | undefined,
  ): ReadonlyMap<string, number> | undefined {
    if (this.#ranks.has(list)) return this.#ranks.get(list);
    const ranks = read();
    this.#ranks.set(list, ranks);
    return ranks;
  }

  /** What a list held before it was removed to be written again, as canonical texts. */
  removed(list: Elements, read: () => Json | undefined): ReadonlySet<string> {
    const known = this.#removed.get(list);
    if (known !== undefined) return known;
    const before = read();
    const removed = new Set((readableElements(before, listRoom()) ?? []).map(canonical));
    this.#removed.set(list, removed);
    return removed;
  }

  /** Whether the pod's own elements cover another, as they were before any policy of this merge added to them. */
  covered(list: Elements, read: () => (element: JsonObject) => boolean): (element: JsonObject) => boolean {
    const covered = this.#covered.get(list) ?? read();
    this.#covered.set(list, covered);
    return covered;
  }

  /**
   * `elements` as they are now: what was read for an earlier policy counts only while nothing else has changed them. Nothing where they
   * are too many to be read.
   */
  of(list: Elements, elements: readonly Json[], budget: WorkBudget): KnownList | undefined {
    if (this.#unreadable.has(elements)) return undefined;
    const known = this.#lists.get(list);
    if (known?.isOf(elements)) return known;
    const readable = readableElements(elements, listRoom());
    if (readable === undefined) {
      this.#unreadable.add(elements);
      return undefined;
    }
    budget.spend(2 * elements.length);
    const read = new KnownList(list, elements, readable);
    this.#lists.set(list, read);
    return read;
  }
}

/** The elements of a list, found by their meaning. */
export class KnownList {
  readonly #elements: readonly Json[];
  #length: number;
  #highest: number | undefined;
  readonly #meanings = new Set<string>();
  readonly #keys = new Map<string, JsonObject>();

  /** `readable`: without elements deeper than any of a policy, which mean nothing that a policy could mean. */
  constructor(list: Elements, elements: readonly Json[], readable: readonly Json[]) {
    this.#elements = elements;
    this.#length = elements.length;
    for (const element of readable) this.#note(element, list.meaning(element), list.key?.(element));
  }

  /** Elements are appended, and removed again where a policy is refused; a list in another order is another list. */
  isOf(elements: readonly Json[]): boolean {
    return elements === this.#elements && elements.length === this.#length;
  }

  has(meaning: string): boolean {
    return this.#meanings.has(meaning);
  }

  /** The first element with this key. */
  withKey(key: string | undefined): JsonObject | undefined {
    return key === undefined ? undefined : this.#keys.get(key);
  }

  /** The highest stored position of any of its elements. */
  highest(order: ReadonlyMap<string, number>): number {
    if (this.#highest === undefined) {
      this.#highest = -1;
      for (const one of this.#elements)
        if (shallow(one)) this.#highest = Math.max(this.#highest, order.get(canonical(one)) ?? -1);
    }
    return this.#highest;
  }

  /** One was appended or inserted, with its position in the stored list. */
  add(element: JsonObject, { meaning, key }: ElementTexts, rank: number | undefined): void {
    this.#length++;
    if (this.#highest !== undefined) this.#highest = Math.max(this.#highest, rank ?? -1);
    this.#note(element, meaning, key);
  }

  #note(element: Json, meaning: string, key: string | undefined): void {
    this.#meanings.add(meaning);
    if (key !== undefined && isObject(element) && !this.#keys.has(key)) this.#keys.set(key, element);
  }
}
