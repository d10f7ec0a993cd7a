import { canonical, isObject, type Json, type JsonObject } from "../../../../core/json.ts";
import { shallow } from "../../../../core/provenance/origin.ts";
import type { WorkBudget } from "../../merge/work-budget.ts";
import type { ListPlace } from "../places.ts";

/** The lists of one object, each read once for all policies that add to it. */
export class KnownLists {
  readonly #lists = new Map<ListPlace, KnownList>();

  readonly #ranks = new Map<ListPlace, ReadonlyMap<string, number> | undefined>();

  /** Where each element stands in the stored list; that is the same for all policies that are merged together. */
  ranks(
    list: ListPlace,
    read: () => ReadonlyMap<string, number> | undefined,
  ): ReadonlyMap<string, number> | undefined {
    if (this.#ranks.has(list)) return this.#ranks.get(list);
    const ranks = read();
    this.#ranks.set(list, ranks);
    return ranks;
  }

  readonly #taken = new Map<ListPlace, ReadonlySet<string>>();

  /** What was in a list before it was taken back to be written anew, as canonical texts. */
  taken(list: ListPlace, read: () => Json | undefined): ReadonlySet<string> {
    const known = this.#taken.get(list);
    if (known !== undefined) return known;
    const before = read();
    const taken = new Set(Array.isArray(before) ? before.filter(shallow).map(canonical) : []);
    this.#taken.set(list, taken);
    return taken;
  }

  /** `elements` as they are now: what was read for an earlier policy counts only as long as nobody else has changed them. */
  of(list: ListPlace, elements: readonly Json[], effort: WorkBudget): KnownList {
    const known = this.#lists.get(list);
    if (known?.isOf(elements)) return known;
    effort.spend(2 * elements.length);
    const anew = new KnownList(list, elements);
    this.#lists.set(list, anew);
    return anew;
  }
}

/** What a list has, to be asked for by its meaning. */
export class KnownList {
  readonly #list: ListPlace;
  readonly #elements: readonly Json[];
  #length: number;
  #highest: number | undefined;
  readonly #meanings = new Set<string>();
  readonly #keys = new Map<string, JsonObject>();

  constructor(list: ListPlace, elements: readonly Json[]) {
    this.#list = list;
    this.#elements = elements;
    this.#length = elements.length;
    // What is deeper than any element of ours means nothing that a policy could mean.
    for (const element of elements) if (shallow(element)) this.#note(element);
  }

  /** Elements come at the end, and go again where a part of a policy is refused; a list of another order is another list. */
  isOf(elements: readonly Json[]): boolean {
    return elements === this.#elements && elements.length === this.#length;
  }

  has(element: Json): boolean {
    return this.#meanings.has(this.#list.meaning(element));
  }

  /** The first that is of one kind with an element, of which there may be one only. */
  other(key: string | undefined): JsonObject | undefined {
    return key === undefined ? undefined : this.#keys.get(key);
  }

  /** How far behind in the stored list any of its elements stands. */
  highest(order: ReadonlyMap<string, number>): number {
    if (this.#highest === undefined) {
      this.#highest = -1;
      for (const one of this.#elements)
        if (shallow(one)) this.#highest = Math.max(this.#highest, order.get(canonical(one)) ?? -1);
    }
    return this.#highest;
  }

  /** One has come, with its place in the stored list. */
  add(element: Json, rank: number | undefined): void {
    this.#length++;
    if (this.#highest !== undefined) this.#highest = Math.max(this.#highest, rank ?? -1);
    this.#note(element);
  }

  #note(element: Json): void {
    const { meaning, key } = this.#list;
    this.#meanings.add(meaning(element));
    if (key === undefined || !isObject(element)) return;
    const text = key(element);
    if (!this.#keys.has(text)) this.#keys.set(text, element);
  }
}
