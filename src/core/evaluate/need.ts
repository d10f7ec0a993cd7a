import { canonical, type Json, type JsonObject } from "../json.ts";

/**
 * What a decision needs from outside that a view can't hold. A module returns it as a value; the shell fetches it and the
 * request is evaluated again.
 */
export type Need =
  | {
      readonly get: { readonly resource: string; readonly namespace?: string; readonly name: string };
      /** Past every cache. */
      readonly live?: boolean;
      /** The API server may answer from its watch cache, without etcd: for what never changes in an object. @default from etcd */
      readonly anyVersion?: true;
      /** There need not be such an object: that it is absent is an answer, and nothing unknown. */
      readonly mayBeAbsent?: true;
      /** The same for its kind: a cluster need not serve it. */
      readonly mayBeUnserved?: true;
      /** As it is stored, once what is being written has been, or has failed. @default as it will be if that succeeds */
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
      /** At most this long, whatever the share comes to. @default the share alone */
      readonly timeoutMs?: number;
    }
  | {
      /** The spec of a SubjectAccessReview. */
      readonly access: JsonObject;
    };

/** What the shell found for a need. */
export type Fact =
  | {
      readonly found: Json;
      /** False where a list was cut by its limit or its time. */
      readonly complete: boolean;
      /** With a change of another request that is still being written, and may fail. */
      readonly unwritten?: true;
      /** Where a list that was cut goes on. */
      readonly next?: string;
      /** Items of a list, those that were cut included: exact where complete, else the API server's estimate, which it gives only without selectors. */
      readonly total?: number;
    }
  | {
      /** The API server answered that there is no such object, or that it does not serve such a kind at all. */
      readonly absent: "NotFound" | "NotServed";
    }
  | {
      /** Why, as a sentence. */
      readonly failed: string;
      /** The HTTP code of the API server's answer; absent where there was none. */
      readonly status?: number;
      /** The StatusReason of that answer: `Forbidden`, `TooManyRequests`. */
      readonly reason?: string;
    };

/** The fact of whatever could not be fetched or written before the deadline. */
export const DEADLINE_EXCEEDED = { failed: "request deadline exceeded" } as const;

/**
 * Why nothing is known of an object: `undefined` where it was found, or surely does not exist. For a kind that may not be served,
 * look at `absent` instead.
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
    // Kept, so that it is among the missing.
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

  /** What was needed and not found. */
  missing(): Need[] {
    const missing: Need[] = [];
    for (const { need, fact } of this.#facts.values())
      if (!("found" in fact) && !isAnswer(need, fact)) missing.push(need);
    return missing;
  }
}
