/** As Kubernetes' own clients wait: 0.8 s at first, doubled to at most 30 s. */
export interface BackoffLimits {
  readonly firstMs: number;
  readonly longestMs: number;
  /** After this time without a failure the next one is a first one again. */
  readonly forgetMs: number;
}

export const BACKOFF: BackoffLimits = { firstMs: 800, longestMs: 30_000, forgetMs: 120_000 };

/** How long to wait after each failure. Knows no clock: it is told the time. */
export class Backoff {
  readonly #limits: BackoffLimits;
  readonly #random: () => number;
  #failures = 0;
  #last = Number.NEGATIVE_INFINITY;

  constructor(random: () => number, limits: BackoffLimits = BACKOFF) {
    this.#random = random;
    this.#limits = limits;
  }

  /** True where nothing has failed for long. */
  fresh(now: number): boolean {
    return this.#failures === 0 || now - this.#last >= this.#limits.forgetMs;
  }

  /** Notes a failure, and says how long to wait: half of the step for certain, the rest by chance, so that clients spread. */
  next(now: number): number {
    if (this.fresh(now)) this.#failures = 0;
    const { firstMs, longestMs } = this.#limits;
    // No power beyond what reaches the longest: 2 ** 1100 is Infinity.
    const step = Math.min(longestMs, firstMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    const wait = step / 2 + (step / 2) * this.#random();
    // Waiting is not health.
    this.#last = now + wait;
    return wait;
  }
}
