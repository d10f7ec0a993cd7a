/** What must be true for this instance to be given work. */
export const CONDITIONS = ["source-read", "listening", "not-draining"] as const;
export type Condition = (typeof CONDITIONS)[number];

const BEAT = 0;
const SLOTS = 1 + CONDITIONS.length;

/**
 * The state of the main thread in memory that two threads share: when it was last alive, and what is true of it. So the other
 * thread knows without asking, and asking is what a stuck thread can't answer.
 */
export class Health {
  readonly memory: SharedArrayBuffer;
  readonly #slots: BigInt64Array;

  constructor(memory = new SharedArrayBuffer(SLOTS * BigInt64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#slots = new BigInt64Array(memory);
  }

  /** The clock of `hrtime` is one for all threads and never jumps. */
  beat(): void {
    Atomics.store(this.#slots, BEAT, process.hrtime.bigint());
  }

  /** Milliseconds since the last beat. */
  age(): number {
    return Number(process.hrtime.bigint() - Atomics.load(this.#slots, BEAT)) / 1e6;
  }

  set(condition: Condition, holds: boolean): void {
    Atomics.store(this.#slots, 1 + CONDITIONS.indexOf(condition), holds ? 1n : 0n);
  }

  holds(condition: Condition): boolean {
    return Atomics.load(this.#slots, 1 + CONDITIONS.indexOf(condition)) === 1n;
  }
}
