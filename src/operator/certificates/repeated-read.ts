import { pause } from "../../cluster/client/retry.ts";

/** One small read, often enough that a deleted Secret is noticed soon: the certificate in use is not trusted from then on. */
export const READ_EVERY_MS = 3_000;
/** Calls with unknown tokens make usher read at this interval at most. */
const SOON_MS = 500;
/** A call waits for it: shorter than the time that the shortest hook leaves. */
export const READ_MS = 2_000;

export interface ReadTimes {
  readonly pollMs?: number;
  readonly soonMs?: number;
}

/** A read that is repeated until it is stopped, and runs early if a call waits for a new value. It must not reject. */
export class RepeatedRead {
  readonly #read: () => Promise<void>;
  readonly #times: ReadTimes;
  #timer: NodeJS.Timeout | undefined;
  #readAt = 0;
  #soon: Promise<void> | undefined;

  constructor(read: () => Promise<void>, times: ReadTimes) {
    this.#read = read;
    this.#times = times;
  }

  /** Resolves after the first read. */
  async start(): Promise<void> {
    await this.now();
    this.#timer = setInterval(() => void this.now(), this.#times.pollMs ?? READ_EVERY_MS);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  now(): Promise<void> {
    this.#readAt = performance.now();
    return this.#read();
  }

  /** For a caller that arrives after the last read; all waiting callers share one. */
  soon(): Promise<void> {
    const wait = Math.max(0, this.#readAt + (this.#times.soonMs ?? SOON_MS) - performance.now());
    this.#soon ??= pause(wait).then(() => {
      this.#soon = undefined;
      return this.now();
    });
    return this.#soon;
  }
}
