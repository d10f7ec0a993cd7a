import type { Commit } from "../../core/evaluate/decision.ts";
import type { CommitResult, Outside } from "../../core/evaluate/evaluate.ts";
import { DEADLINE_EXCEEDED, type Fact, type Need } from "../../core/evaluate/need.ts";
import { factsOf, type Log } from "../../core/log.ts";
import type { Deadline, Source } from "../../core/view/source.ts";

/**
 * Kept back from the caller's time for the last round, the answer and the way home: a tenth, but never so little that a busy
 * loop eats it, nor so much that a long wait loses seconds for nothing.
 */
const MARGIN_SHARE = 0.1;
const MARGIN_LEAST_MS = 50;
const MARGIN_MOST_MS = 500;

export function marginOf(waitsMs: number): number {
  return Math.min(Math.max(waitsMs * MARGIN_SHARE, MARGIN_LEAST_MS), MARGIN_MOST_MS);
}

/** The client that waits for a response: `close` is emitted when it disconnects. A ServerResponse is one. */
export interface Caller {
  readonly once: (event: "close", listener: () => void) => unknown;
}

/**
 * The outside of one request: the source, until the time is up or the caller is gone. A request that needs nothing, and
 * those are nearly all, pays for no timer, no listener and no signal.
 */
export class RequestDeadline implements Outside {
  readonly #source: Source;
  readonly #caller: Caller | undefined;
  readonly #endsAt: number;
  readonly #log: Log;
  #begun: Begun | undefined;

  /** `started` is of `performance.now()`. */
  constructor(source: Source, log: Log, caller: Caller | undefined, started: number, waitsMs: number) {
    this.#source = source;
    this.#log = log;
    this.#caller = caller;
    this.#endsAt = started + waitsMs - marginOf(waitsMs);
  }

  expired(): boolean {
    return this.#remaining() <= 0;
  }

  /** The source promises facts in time and never to reject; a request does not depend on it keeping its word. */
  fetch(needs: readonly Need[]): Promise<readonly Fact[]> {
    const { deadline, over } = this.#begin();
    const nothing = (): readonly Fact[] => needs.map(() => DEADLINE_EXCEEDED);
    const asked = async () => this.#source.fetch(needs, deadline);
    const found = asked().catch((error: unknown) => {
      this.#log.error(factsOf(error), "the source broke while it fetched facts");
      return needs.map(() => ({ failed: "the source could not answer" }));
    });
    return Promise.race([found, over.then(nothing)]);
  }

  /** A write whose end we did not see may have happened; the reconciler of the module settles that. */
  commit(commit: Commit): Promise<CommitResult> {
    const { deadline, over } = this.#begin();
    const asked = async () => this.#source.commit(commit, deadline);
    const result = asked().catch((error: unknown): CommitResult => {
      this.#log.error(factsOf(error), "the source broke while it wrote a record");
      return { failed: "the source could not write" };
    });
    return Promise.race([result, over.then((): CommitResult => DEADLINE_EXCEEDED)]);
  }

  /** To be called once the answer is made: what the source holds for this request is let go. */
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
    this.#caller?.once("close", stop);
    return begun;
  }
}

interface Begun {
  readonly stop: () => void;
  readonly deadline: Deadline;
  readonly over: Promise<void>;
  readonly timer: NodeJS.Timeout;
}
