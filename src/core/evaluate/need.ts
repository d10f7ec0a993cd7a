import { canonical, type Json, type JsonObject } from "../json.ts";

/**
 * What a decision needs from outside that a view can't hold. A module asks for it as a value; the shell fetches it and the
 * request is evaluated again.
 */
export type Need =
  | {
      readonly get: { readonly resource: string; readonly namespace?: string; readonly name: string };
      /** Past every cache. */
      readonly live?: boolean;
    }
  | {
      readonly list: {
        readonly resource: string;
        readonly namespace?: string;
        readonly labelSelector?: string;
        readonly fieldSelector?: string;
        /** Where an earlier list stopped: its `next`. */
        readonly continue?: string;
        /** With the record of who wrote which field, which is half of the bytes. @default without */
        readonly managers?: boolean;
      };
      readonly limit: number;
      /** Part of the remaining time that the list may take, 0 to 1. */
      readonly share: number;
    }
  | {
      /** The spec of a SubjectAccessReview. */
      readonly access: JsonObject;
    };

/** What the shell found. `complete` is false where a list was cut by its limit or its time; `next` is where it would go on. */
export type Fact =
  | { readonly found: Json; readonly complete: boolean; readonly next?: string }
  | { readonly absent: true }
  | { readonly failed: string };

/** One spelling for one need, so that two modules that need the same share one fetch. */
export function needKey(need: Need): string {
  return canonical(need as unknown as Json);
}

/** For people: `Namespace shop` would need the kind; resources are what the need knows. */
export function describeNeed(need: Need): string {
  if ("get" in need) {
    const { resource, namespace, name } = need.get;
    return `${resource} ${namespace === undefined ? "" : `${namespace}/`}${name}`;
  }
  if ("list" in need) {
    return `list of ${need.list.resource}${need.list.namespace === undefined ? "" : ` in ${need.list.namespace}`}`;
  }
  return "access review";
}

/** The facts of one request, by need. */
export class Facts {
  readonly #facts = new Map<string, { readonly need: Need; readonly fact: Fact }>();
  #final: string | undefined;

  /** `undefined` says "not fetched yet": return the need. In the last round it is a failure instead. */
  of(need: Need): Fact | undefined {
    const known = this.#facts.get(needKey(need))?.fact;
    if (known !== undefined || this.#final === undefined) return known;
    const failed = { failed: this.#final };
    // Kept, so that it is among what the answer could not rest on.
    this.set(need, failed);
    return failed;
  }

  set(need: Need, fact: Fact): void {
    this.#facts.set(needKey(need), { need, fact });
  }

  forget(need: Need): void {
    this.#facts.delete(needKey(need));
  }

  /** From now on what is missing is failed, for this reason. */
  close(reason: string): void {
    this.#final = reason;
  }

  get closed(): boolean {
    return this.#final !== undefined;
  }

  /** What was asked for and could not be had: what the answer can't rest on. */
  missing(): Need[] {
    const missing: Need[] = [];
    for (const { need, fact } of this.#facts.values()) if (!("found" in fact)) missing.push(need);
    return missing;
  }
}
