import { canonical, isObject, type Json, type JsonObject } from "../json.ts";
import { type ListRoom, listRoom, readableElements } from "../provenance/origin.ts";

/**
 * Elements that hold more than was added are looked for only in lists of at most so many. Modules that write such elements keep their
 * lists as short; and an annotation that names ten thousand elements of a list of ten thousand must not cost a hundred million looks.
 */
const WIDENED_LIMIT = 64;

/**
 * A list of an object, asked whether it carries what was added to it. It does where an element is the same, or has all that the added
 * one has and more of it in lists: so a term to which others have added requirements still carries ours.
 */
export class ElementList {
  readonly #texts = new Set<string>();
  readonly #wide: readonly Members[];

  constructor(list: Json | undefined, room: ListRoom = listRoom()) {
    const elements = readableElements(list, room) ?? [];
    for (const element of elements) this.#texts.add(canonical(element));
    this.#wide =
      elements.length > WIDENED_LIMIT ? [] : elements.filter(isObject).map((one) => new Members(one));
  }

  /** Whether an element is the same. `element` is canonical text. */
  has(element: string): boolean {
    return this.#texts.has(element);
  }

  /** `element` is canonical text. */
  carries(element: string): boolean {
    if (this.#texts.has(element)) return true;
    if (this.#wide.length === 0 || !element.startsWith("{")) return false;
    const added = spelledPart(JSON.parse(element));
    return this.#wide.some((one) => one.include(added));
  }
}

/** Whether an element has all that another has, by the same measure. */
export function containsElement(element: Json, part: Json): boolean {
  return isObject(element) && isObject(part)
    ? new Members(element).include(spelledPart(part))
    : canonical(element) === canonical(part);
}

/** The members of one object, each spelled once however often it is asked. */
class Members {
  readonly #object: JsonObject;
  readonly #spelled = new Map<string, string | ReadonlySet<string>>();

  constructor(object: JsonObject) {
    this.#object = object;
  }

  include(part: SpelledPart): boolean {
    for (const key in this.#object) {
      if (!part.has(key) && Object.hasOwn(this.#object, key) && !Array.isArray(this.#object[key]))
        return false;
    }
    for (const [key, wanted] of part) if (!this.#includes(key, wanted)) return false;
    return true;
  }

  #includes(key: string, wanted: SpelledMember): boolean {
    if (!Object.hasOwn(this.#object, key)) return false;
    let has = this.#spelled.get(key);
    if (has === undefined) {
      const value = this.#object[key];
      has = Array.isArray(value) ? new Set(value.map(canonical)) : canonical(value);
      this.#spelled.set(key, has);
    }
    if (typeof has === "string") return has === wanted.text;
    return wanted.items?.every((one) => has.has(one)) ?? false;
  }
}

interface SpelledMember {
  readonly text: string;
  /** Of a list. */
  readonly items: readonly string[] | undefined;
}

/** The members of an element that is looked for, spelled once for all that it is compared with. */
type SpelledPart = ReadonlyMap<string, SpelledMember>;

function spelledPart(part: JsonObject): SpelledPart {
  return new Map(
    Object.keys(part).map((key) => {
      const value = part[key];
      const items = Array.isArray(value) ? value.map(canonical) : undefined;
      return [key, { text: items === undefined ? canonical(value) : `[${items.join(",")}]`, items }];
    }),
  );
}
