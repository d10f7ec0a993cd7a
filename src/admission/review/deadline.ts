import type { Commit } from "../../core/decision/decision.ts";
import { DEADLINE_EXCEEDED, type Fact, type Need } from "../../core/decision/need.ts";
import type { CommitResult, Host } from "../../core/evaluate/evaluate.ts";
import type { Deadline, Source } from "../../core/evaluate/source.ts";
import { factsOf, type Log } from "../../core/log.ts";

/**
 * Subtracted from the client's timeout for the last round, the response and the network: a tenth, but at least what a
 * busy loop can take, and at most half a second.
 */
const MARGIN_SHARE = 0.1;
const MARGIN_LEAST_MS = 50;
const MARGIN_MOST_MS = 500;

export function marginOf(timeoutMs: number): number {
  return Math.min(Math.max(timeoutMs * MARGIN_SHARE, MARGIN_LEAST_MS), MARGIN_MOST_MS);
}

/** The client that waits for the response. Emits `close` when it disconnects; a ServerResponse is one. */
export interface Caller {
  readonly once: (event: "close", listener: () => void) => unknown;
}

/**
 * The source from the view of one request: until its deadline, or until the client disconnects. A request that needs no
 * facts, as most, has no timer, no listener and no signal.
 */
export class RequestDeadline implements Host {
  readonly #source: Source;
  readonly #client: Caller | undefined;
  readonly #endsAt: number;
  readonly #log: Log;
  #begun: Begun | undefined;

  /** `started` is of `performance.now()`. */
  constructor(source: Source, log: Log, client: Caller | undefined, started: number, timeoutMs: number) {
    this.#source = source;
    this.#log = log;
    this.#client = client;
    this.#endsAt = started + timeoutMs - marginOf(timeoutMs);
  }

  expired(): boolean {
    return this.#remaining() <= 0;
  }

  /** The source's contract is to answer in time and never to reject; a request does not rely on it. */
  fetch(needs: readonly Need[]): Promise<readonly Fact[]> {
    const { deadline, over } = this.#begin();
    const nothing = (): readonly Fact[] => needs.map(() => DEADLINE_EXCEEDED);
    const asked = async () => this.#source.fetch(needs, deadline);
    const found = asked().catch((error: unknown) => {
      this.#log.error(factsOf(error), "internal error fetching facts");
      return needs.map(() => ({ failed: "internal error fetching facts" }));
    });
    return Promise.race([found, over.then(nothing)]);
  }

  /** A write that was not seen to end may have happened; the module's reconciler corrects it. */
  commit(commit: Commit): Promise<CommitResult> {
    const { deadline, over } = this.#begin();
    const asked = async () => this.#source.commit(commit, deadline);
    const result = asked().catch((error: unknown): CommitResult => {
      this.#log.error(factsOf(error), "internal error writing a commit");
      return { failed: "internal error writing a commit" };
    });
    return Promise.race([result, over.then((): CommitResult => DEADLINE_EXCEEDED)]);
  }

  /** To be called once the response is built: releases what the source holds for this request. */
  end(): void {
    if (this.#begun === undefined) return;
    clearTimeout(this.#begun.timer);
    this.#begun.stop();
  }

  #remaining(): number {
    return this.#begun?.deadline.signal.aborted ? 0 : this.#endsAt - performance.now();
  }

  #begin(): Begun {
    if (this.#begun !== undefined) return this.#begun;
    const abort = new AbortController();
    const { promise: over, resolve } = Promise.withResolvers<void>();
    const stop = () => {
      abort.abort();
      resolve();
    };
    const begun: Begun = {
      stop,
      deadline: { remaining: () => this.#remaining(), signal: abort.signal },
      over,
      timer: setTimeout(stop, Math.max(0, this.#remaining())),
    };
    this.#begun = begun;
    this.#client?.once("close", stop);
    return begun;
  }
}

interface Begun {
  readonly stop: () => void;
  readonly deadline: Deadline;
  readonly over: Promise<void>;
  readonly timer: NodeJS.Timeout;
}
