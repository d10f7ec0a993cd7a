import { DEADLINE_EXCEEDED, type Fact } from "../../core/evaluate/need.ts";
import type { Deadline } from "../../core/view/source.ts";
import { onAbort } from "../client/retry.ts";

/** The same question of several requests. */
interface Group {
  readonly askers: Set<Deadline>;
  readonly left: AbortController;
  readonly fact: Promise<Fact>;
  readonly send: () => void;
}

/**
 * Equal questions of the same moment become one. Nobody joins a read that is already on its way: it may have been answered from a
 * time before the question, and "live" means after. Whoever comes meanwhile shares the next one, so there are never more than two.
 */
export class SharedReads {
  readonly #onTheWay = new Set<string>();
  readonly #next = new Map<string, Group>();

  async ask(key: string, deadline: Deadline, read: (deadline: Deadline) => Promise<Fact>): Promise<Fact> {
    if (deadline.signal.aborted) return DEADLINE_EXCEEDED;
    const group = this.#next.get(key) ?? this.#group(key, read);
    group.askers.add(deadline);
    const { promise: over, resolve } = Promise.withResolvers<Fact>();
    const off = onAbort(deadline.signal, () => {
      resolve(DEADLINE_EXCEEDED);
      group.askers.delete(deadline);
      if (group.askers.size > 0) return;
      group.left.abort();
      // Nobody may join a read that was given up before it was sent.
      if (this.#next.get(key) === group) this.#next.delete(key);
    });
    if (!this.#onTheWay.has(key)) group.send();
    return Promise.race([group.fact, over]).finally(off);
  }

  #group(key: string, read: (deadline: Deadline) => Promise<Fact>): Group {
    const askers = new Set<Deadline>();
    const left = new AbortController();
    // As long as the most patient one has.
    const remaining = () => Math.max(0, ...[...askers].map((asker) => asker.remaining()));
    const { promise: fact, resolve } = Promise.withResolvers<Fact>();
    const send = () => {
      this.#next.delete(key);
      this.#onTheWay.add(key);
      const answer = left.signal.aborted
        ? Promise.resolve(DEADLINE_EXCEEDED)
        : read({ remaining, signal: left.signal });
      void answer.then((found) => {
        this.#onTheWay.delete(key);
        resolve(found);
        this.#next.get(key)?.send();
      });
    };
    const group = { askers, left, fact, send };
    this.#next.set(key, group);
    return group;
  }
}
