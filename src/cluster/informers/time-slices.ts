/** How long one task may occupy the event loop. An admission review waits for two or three slices at most; switching costs 1 %. */
export const TIME_SLICE_MS = 2;

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

/** The time slices of one task that consists of many small steps. */
export class TimeSlices {
  readonly #queue: TimeSliceQueue;
  #until = 0;

  constructor(queue: TimeSliceQueue) {
    this.#queue = queue;
  }

  /** To be awaited before each step; `undefined` while the slice lasts. */
  next(): Promise<void> | undefined {
    if (performance.now() < this.#until) return undefined;
    return this.#queue.acquire().then(() => {
      this.#until = performance.now() + TIME_SLICE_MS;
    });
  }
}
