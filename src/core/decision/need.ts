import { canonical, type Json, type JsonObject } from "../json.ts";

/**
 * A fact that a decision needs from outside and a view can't hold. A module returns it as a value; the shell fetches it
 * and the request is evaluated again.
 */
export type Need =
  | {
      readonly get: { readonly resource: string; readonly namespace?: string; readonly name: string };
      /** Past every cache. */
      readonly live?: boolean;
      /** The API server may answer from its watch cache, without etcd: for immutable parts of an object. @default from etcd */
      readonly anyVersion?: true;
      /** The object need not exist: its absence is an answer, not an unknown. */
      readonly mayBeAbsent?: true;
      /** The same for its kind: a cluster need not serve it. */
      readonly mayBeUnserved?: true;
      /** The stored state, after writes in flight have ended. @default the state if they succeed */
      readonly written?: true;
    }
  | {
      readonly list: {
        readonly resource: string;
        readonly namespace?: string;
        readonly labelSelector?: string;
        readonly fieldSelector?: string;
        /** Where an earlier list stopped: its `next`. */
        readonly continue?: string;
        /** With `metadata.managedFields`, which are half of the bytes. @default without */
        readonly managers?: boolean;
      };
      readonly limit: number;
      /** Part of the remaining time that the list may take, 0 to 1. */
      readonly share: number;
      /** A maximum for the share. @default the share alone */
      readonly timeoutMs?: number;
    }
  | {
      /** The spec of a SubjectAccessReview. */
      readonly access: JsonObject;
    };

/** The shell's result for a need. */
export type Fact =
  | {
      readonly found: Json;
      /** False if a list was cut by its limit or its time. */
      readonly complete: boolean;
      /** With a change of another request that is still being written, and may fail. */
      readonly unwritten?: true;
      /** Where a list that was cut continues. */
      readonly next?: string;
      /**
       * Items of a list, including those that were cut: exact if complete, else the API server's estimate, which it
       * gives only without selectors.
       */
      readonly total?: number;
    }
  | {
      /** The API server answered that the object does not exist, or that it does not serve the kind. */
      readonly absent: "NotFound" | "NotServed";
    }
  | {
      /** Why, as a sentence. */
      readonly failed: string;
      /** The HTTP code of the API server's response; absent if there was none. */
      readonly status?: number;
      /** The StatusReason of that answer: `Forbidden`, `TooManyRequests`. */
      readonly reason?: string;
    };

/** After this many rounds an unmet need counts as failed: a module that always needs more would never decide. */
export const MAX_ROUNDS = 4;

/** The fact of a need or write that did not complete before the deadline. */
export const DEADLINE_EXCEEDED = { failed: "request deadline exceeded" } as const;

/**
 * Why an object is unknown: `undefined` if it was found, or surely does not exist. For a kind that may not be served,
 * check `absent` instead.
 */
export function failureOf(fact: Fact): string | undefined {
  if ("failed" in fact) return fact.failed;
  return "absent" in fact && fact.absent === "NotServed"
    ? "the API server does not serve this kind"
    : undefined;
}

/** One spelling for one need, so that two modules with the same need share one fetch. */
export function needKey(need: Need): string {
  return canonical(need as unknown as Json);
}

/** `nodes worker-1`, `list of pods in shop`, for messages. */
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

function isAnswer(need: Need, fact: Fact): boolean {
  if (!("get" in need) || !("absent" in fact)) return false;
  return (fact.absent === "NotFound" ? need.mayBeAbsent : need.mayBeUnserved) === true;
}

/** The facts of one request, by need. */
export class Facts {
  readonly #facts = new Map<string, { readonly need: Need; readonly fact: Fact }>();
  #final: string | undefined;
  /** Commits of this request that conflicted until now: for counters. */
  conflicts = 0;

  /** `undefined`: not fetched yet, return the need. In the last round a failed fact instead. */
  of(need: Need): Fact | undefined {
    const known = this.#facts.get(needKey(need))?.fact;
    if (known !== undefined || this.#final === undefined) return known;
    const failed = { failed: this.#final };
    // Kept, so that it is listed as missing.
    this.set(need, failed);
    return failed;
  }

  set(need: Need, fact: Fact): void {
    this.#facts.set(needKey(need), { need, fact });
  }

  forget(need: Need): void {
    this.#facts.delete(needKey(need));
  }

  /** From now on unmet needs have failed, for this reason. */
  close(reason: string): void {
    this.#final = reason;
  }

  get closed(): boolean {
    return this.#final !== undefined;
  }

  /** Needs that were not found. */
  missing(): Need[] {
    const missing: Need[] = [];
    for (const { need, fact } of this.#facts.values())
      if (!("found" in fact) && !isAnswer(need, fact)) missing.push(need);
    return missing;
  }
}
