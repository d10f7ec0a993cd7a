import { isObject, type Json, type JsonObject } from "../../core/json.ts";
import { shallow } from "../../core/origin.ts";
import type { ListPlace } from "./places.ts";

/** The lists of one object, each read once for all policies that add to it. */
export class KnownLists {
  readonly #lists = new Map<ListPlace, KnownList>();

  /** `elements` as they are now: what was read for an earlier policy counts only as long as nobody else has changed them. */
  of(list: ListPlace, elements: readonly Json[]): KnownList {
    const known = this.#lists.get(list);
    if (known?.isOf(elements)) return known;
    const anew = new KnownList(list, elements);
    this.#lists.set(list, anew);
    return anew;
  }
}

/** What a list has, to be asked for by its meaning. */
class KnownList {
  readonly #list: ListPlace;
  readonly #elements: readonly Json[];
  #length: number;
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

  /** One has come to the end. */
  add(element: Json): void {
    this.#length++;
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
