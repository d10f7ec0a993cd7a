import type { Source } from "../../core/evaluate/source.ts";

/** The conditions for this instance to be ready. */
export const CONDITIONS = ["source-read", "certificate-trusted", "listening", "not-draining"] as const;
export type Condition = (typeof CONDITIONS)[number];

const BEAT = 0;
const SLOTS = 1 + CONDITIONS.length;

/** How often the main thread records its heartbeat. */
const HEARTBEAT_MS = 500;

/** How often a source that is not synced yet is checked. */
const SYNC_CHECK_MS = 25;

/**
 * The health of the main thread, in memory shared with the thread of the ops server: its last heartbeat, and which
 * conditions hold. A stuck main thread could not answer a message.
 */
export class Health {
  readonly memory: SharedArrayBuffer;
  readonly #slots: BigInt64Array;

  constructor(memory = new SharedArrayBuffer(SLOTS * BigInt64Array.BYTES_PER_ELEMENT)) {
    this.memory = memory;
    this.#slots = new BigInt64Array(memory);
  }

  /** `hrtime` is the same clock in all threads, and monotonic. */
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

/**
 * Records a heartbeat twice a second, and that the source is synced and the certificate trusted as soon as they are. A
 * certificate that loses trust later does not make an instance unready: that would take away all instances, and none
 * would be left to answer.
 */
export function startHeartbeat(
  source: Source,
  isTrusted: () => boolean,
): { readonly health: Health; readonly stop: () => void } {
  const health = new Health();
  health.beat();
  health.set("not-draining", true);
  health.set("source-read", source.ready);
  const trust = () => {
    if (!health.holds("certificate-trusted")) health.set("certificate-trusted", isTrusted());
  };
  trust();
  const beats = setInterval(() => {
    health.beat();
    trust();
  }, HEARTBEAT_MS);
  const checks = setInterval(() => {
    health.set("source-read", source.ready);
    if (source.ready) clearInterval(checks);
  }, SYNC_CHECK_MS);
  return {
    health,
    stop: () => {
      clearInterval(beats);
      clearInterval(checks);
    },
  };
}
