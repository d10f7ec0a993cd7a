import { TimeSlices } from "../../core/time-slices.ts";

/**
 * Runs one task in each iteration of the event loop. Tasks that only yielded, each on its own, would all continue in the same
 * iteration and block it for the sum of their slices.
 */
export class TimeSliceQueue {
  readonly #waiting: (() => void)[] = [];
  #scheduled = false;

  /** Resolves when the caller may run, for `TIME_SLICE_MS`. */
  acquire(): Promise<void> {
    return new Promise((resolve) => {
      this.#waiting.push(resolve);
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#scheduled) return;
    this.#scheduled = true;
    setImmediate(() => {
      this.#scheduled = false;
      this.#waiting.shift()?.();
      if (this.#waiting.length > 0) this.#schedule();
    });
  }
}

/** The time slices of one of the tasks that share a queue. */
export function slicesFrom(queue: TimeSliceQueue): TimeSlices {
  return new TimeSlices({ clock: () => performance.now(), turn: () => queue.acquire() });
}
