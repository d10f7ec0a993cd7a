import { DEADLINE_EXCEEDED, type Fact } from "../../core/evaluate/need.ts";
import type { Deadline } from "../../core/view/source.ts";
import { onAbort } from "../client/retry.ts";

/** One read for several requests. */
interface Group {
  readonly deadlines: Set<Deadline>;
  readonly abort: AbortController;
  readonly fact: Promise<Fact>;
  readonly send: () => void;
}

/**
 * Coalesces equal live reads. A request never joins a read in flight, which may return a state from before the request. Requests that
 * arrive meanwhile share the next read, so there are two at most.
 */
export class SharedReads {
  readonly #inFlight = new Set<string>();
  readonly #next = new Map<string, Group>();

  async read(key: string, deadline: Deadline, fetch: (deadline: Deadline) => Promise<Fact>): Promise<Fact> {
    if (deadline.signal.aborted) return DEADLINE_EXCEEDED;
    const group = this.#next.get(key) ?? this.#group(key, fetch);
    group.deadlines.add(deadline);
    const { promise: aborted, resolve } = Promise.withResolvers<Fact>();
    const off = onAbort(deadline.signal, () => {
      resolve(DEADLINE_EXCEEDED);
      group.deadlines.delete(deadline);
      if (group.deadlines.size > 0) return;
      group.abort.abort();
      // A read that was aborted before it was sent must not be joined.
      if (this.#next.get(key) === group) this.#next.delete(key);
    });
    if (!this.#inFlight.has(key)) group.send();
    return Promise.race([group.fact, aborted]).finally(off);
  }

  #group(key: string, fetch: (deadline: Deadline) => Promise<Fact>): Group {
    const deadlines = new Set<Deadline>();
    const abort = new AbortController();
    // The latest deadline.
    const remaining = () => Math.max(0, ...[...deadlines].map((one) => one.remaining()));
    const { promise: fact, resolve } = Promise.withResolvers<Fact>();
    const send = () => {
      this.#next.delete(key);
      this.#inFlight.add(key);
      const response = abort.signal.aborted
        ? Promise.resolve(DEADLINE_EXCEEDED)
        : fetch({ remaining, signal: abort.signal });
      void response.then((found) => {
        this.#inFlight.delete(key);
        resolve(found);
        this.#next.get(key)?.send();
      });
    };
    const group = { deadlines, abort, fact, send };
    this.#next.set(key, group);
    return group;
  }
}
