/** As client-go's reflector: 0.8 s at first, doubled up to 30 s. */
export interface BackoffLimits {
  readonly firstMs: number;
  readonly longestMs: number;
  /** Resets after this time without a failure. */
  readonly forgetMs: number;
}

export const BACKOFF: BackoffLimits = { firstMs: 800, longestMs: 30_000, forgetMs: 120_000 };

/** How long to wait after each failure. Callers pass the time. */
export class Backoff {
  readonly #limits: BackoffLimits;
  readonly #random: () => number;
  #failures = 0;
  #last = Number.NEGATIVE_INFINITY;

  constructor(random: () => number, limits: BackoffLimits = BACKOFF) {
    this.#random = random;
    this.#limits = limits;
  }

  /** True before the first failure, and again after `forgetMs` without one. */
  fresh(now: number): boolean {
    return this.#failures === 0 || now - this.#last >= this.#limits.forgetMs;
  }

  /** Records a failure and returns the delay: half of the step plus a random part, so that clients spread. */
  next(now: number): number {
    if (this.fresh(now)) this.#failures = 0;
    const { firstMs, longestMs } = this.#limits;
    // Bounded: 2 ** 1100 is Infinity.
    const step = Math.min(longestMs, firstMs * 2 ** Math.min(this.#failures, 30));
    this.#failures += 1;
    const wait = step / 2 + (step / 2) * this.#random();
    // The delay itself does not count as time without a failure.
    this.#last = now + wait;
    return wait;
  }
}
