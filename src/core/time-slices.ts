/** How long one task may occupy the event loop. An admission review waits for two or three slices at most; switching costs 1 %. */
export const TIME_SLICE_MS = 2;

export interface TimeSliceOptions {
  /** A monotonic clock, in milliseconds. */
  readonly clock: () => number;
  /** Resolves when the task may run again. */
  readonly turn: () => Promise<void>;
  /** @default `TIME_SLICE_MS` */
  readonly ms?: number;
}

/** The time slices of one task that consists of many small steps: a switch after each step would cost more than the step. */
export class TimeSlices {
  readonly #options: TimeSliceOptions;
  #until = Number.NEGATIVE_INFINITY;

  constructor(options: TimeSliceOptions) {
    this.#options = options;
  }

  /** To be awaited before each step; `undefined` while the slice lasts. */
  next(): Promise<void> | undefined {
    const { clock, turn, ms = TIME_SLICE_MS } = this.#options;
    if (clock() < this.#until) return undefined;
    return turn().then(() => {
      this.#until = clock() + ms;
    });
  }
}
