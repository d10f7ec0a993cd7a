import { isObject, type Json, type JsonObject } from "../../../core/json.ts";
import { listRoom, readableElements } from "../../../core/provenance/annotation.ts";

/** How elements of a list are distinguished. */
export interface Elements {
  /** One string per meaning: equivalent elements have the same string. */
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
  readonly #covered = new Map<Elements, (element: JsonObject) => boolean>();

  /** Whether the pod's own elements, before any policy of this merge, cover another. */
  covered(list: Elements, read: () => (element: JsonObject) => boolean): (element: JsonObject) => boolean {
    const covered = this.#covered.get(list) ?? read();
    this.#covered.set(list, covered);
    return covered;
  }

  /**
   * `elements` as they are now: what was read for an earlier policy counts only while nothing else has changed them. Nothing where they
   * are too many to be read.
   */
  of(list: Elements, elements: readonly Json[]): KnownList | undefined {
    if (this.#unreadable.has(elements)) return undefined;
    const known = this.#lists.get(list);
    if (known?.isOf(elements)) return known;
    const readable = readableElements(elements, listRoom());
    if (readable === undefined) {
      this.#unreadable.add(elements);
      return undefined;
    }
    const read = new KnownList(list, elements, readable);
    this.#lists.set(list, read);
    return read;
  }
}

/** The elements of a list, found by their meaning. */
export class KnownList {
  readonly #elements: readonly Json[];
  #length: number;
  readonly #meanings = new Set<string>();
  readonly #keys = new Map<string, JsonObject>();

  /** `readable`: without elements deeper than any of a policy, which mean nothing that a policy could mean. */
  constructor(list: Elements, elements: readonly Json[], readable: readonly Json[]) {
    this.#elements = elements;
    this.#length = elements.length;
    for (const element of readable) this.#note(element, list.meaning(element), list.key?.(element));
  }

  /** Elements are appended, and removed again if a policy is refused; a list in another order is another list. */
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

  /** One was appended. */
  add(element: JsonObject, { meaning, key }: ElementTexts): void {
    this.#length++;
    this.#note(element, meaning, key);
  }

  #note(element: Json, meaning: string, key: string | undefined): void {
    this.#meanings.add(meaning);
    if (key !== undefined && isObject(element) && !this.#keys.has(key)) this.#keys.set(key, element);
  }
}
