/**
 * How long one piece of work may hold the event loop: a review that comes meanwhile waits no longer than for two or three of these. To
 * take a turn costs some hundredth of it.
 */
export const TIME_SLICE_MS = 2;

/**
 * Lets one piece of work run in each round of the event loop. Several that only yielded, each on its own, would all go on in the
 * same round, and hold it for the sum of their times.
 */
export class TimeSliceQueue {
  readonly #waiting: (() => void)[] = [];
  #scheduled = false;

  /** Is fulfilled when it is the caller's turn; until its next `await` of something that has to wait, or some `TIME_SLICE_MS`. */
  take(): Promise<void> {
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

/** The turns of one piece of work that has many small parts. */
export class TimeSlices {
  readonly #turns: TimeSliceQueue;
  #until = 0;

  constructor(turns: TimeSliceQueue) {
    this.#turns = turns;
  }

  /** Before each part. Nothing to wait for while the turn lasts. */
  next(): Promise<void> | undefined {
    if (performance.now() < this.#until) return undefined;
    return this.#turns.take().then(() => {
      this.#until = performance.now() + TIME_SLICE_MS;
    });
  }
}
