/** Limits a rate: `burst` at once, `perSecond` in the long run. Reads no clock: every call gets the time. */
export class TokenBucket {
  readonly #perMs: number;
  readonly #capacity: number;
  #tokens: number;
  #refilledAt: number;

  constructor(perSecond: number, burst: number, now: number) {
    this.#perMs = perSecond / 1_000;
    this.#capacity = burst;
    this.#tokens = burst;
    this.#refilledAt = now;
  }

  /** Zero if a token was taken, else the milliseconds until one is available. */
  take(now: number): number {
    this.#tokens = Math.min(this.#capacity, this.#tokens + (now - this.#refilledAt) * this.#perMs);
    this.#refilledAt = now;
    if (this.#tokens < 1) return Math.max(1, Math.ceil((1 - this.#tokens) / this.#perMs));
    this.#tokens -= 1;
    return 0;
  }

  /** Whether no token is missing. */
  full(now: number): boolean {
    return this.#tokens + (now - this.#refilledAt) * this.#perMs >= this.#capacity;
  }
}
