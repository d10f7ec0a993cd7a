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

  /** Zero where a token was taken, else how many milliseconds until there is one. */
  take(now: number): number {
    this.#tokens = Math.min(this.#capacity, this.#tokens + (now - this.#refilledAt) * this.#perMs);
    this.#refilledAt = now;
    if (this.#tokens < 1) return Math.max(1, Math.ceil((1 - this.#tokens) / this.#perMs));
    this.#tokens -= 1;
    return 0;
  }

  /** Whether it is as if no token had ever been taken. */
  full(now: number): boolean {
    return this.#tokens + (now - this.#refilledAt) * this.#perMs >= this.#capacity;
  }
}
