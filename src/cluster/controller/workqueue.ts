import { Backoff, type BackoffLimits } from "../client/backoff.ts";

/** Time as a queue sees it, so that tests can make it pass. */
export interface WorkqueueClock {
  /** Milliseconds, any origin. */
  readonly now: () => number;
  /** Calls back once after so many milliseconds; what is returned takes it back. */
  readonly after: (ms: number, call: () => void) => () => void;
}

/** Node fires a timer at once that is set for longer, some 25 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

export const SYSTEM_CLOCK: WorkqueueClock = {
  now: () => performance.now(),
  after: (ms, call) => {
    let timer: NodeJS.Timeout;
    const wait = (left: number): void => {
      const piece = Math.min(left, LONGEST_TIMER_MS);
      timer = setTimeout(() => (piece < left ? wait(left - piece) : call()), piece);
    };
    wait(ms);
    return () => clearTimeout(timer);
  },
};

/** What came of one piece of work. */
export type WorkResult =
  | { readonly done: true /** Look at it again after so long. */; readonly afterMs?: number }
  /** Do it again after a while that grows with each time in a row. */
  | { readonly retry: true };

export interface WorkqueueOptions {
  readonly work: (key: string) => Promise<WorkResult>;
  /** How many keys are worked on at once. @default 4 */
  readonly parallel?: number;
  /** Pieces of work begun in a second, in the long run. @default 50 */
  readonly perSecond?: number;
  /** Pieces of work that may be begun at once after a quiet time. @default 100 */
  readonly burst?: number;
  readonly backoff?: BackoffLimits;
  readonly clock?: WorkqueueClock;
  readonly random?: () => number;
}

/**
 * The first retry comes soon, because most failures are a conflict with someone who is done by now; the longest is short enough that
 * nobody needs to restart usher to see a repaired cluster taken up.
 */
export const RETRY: BackoffLimits = {
  firstMs: 200,
  longestMs: 300_000,
  forgetMs: Number.POSITIVE_INFINITY,
};

const PARALLEL = 4;
/** A label on each of 5,000 nodes takes less than two minutes, and the API server does not feel it. */
const PER_SECOND = 50;
const BURST = 100;
/** One of so many is something that is only done when there is nothing else: it must come to an end in a busy cluster, too. */
const FAIR = 4;

/**
 * Work by key: what is added twice before it is done is done once, what is added while it is being done is done once more
 * afterwards, and no key is ever worked on twice at the same time. A key that fails waits by itself; no other waits for it.
 */
export class Workqueue {
  readonly #work: (key: string) => Promise<WorkResult>;
  readonly #parallel: number;
  readonly #tokens: TokenBucket;
  readonly #limits: BackoffLimits;
  readonly #clock: WorkqueueClock;
  readonly #random: () => number;
  readonly #due = new Set<string>();
  /** Due, too, but nobody waits for it. */
  readonly #unhurried = new Set<string>();
  readonly #running = new Set<string>();
  /** Added again while being worked on. */
  readonly #again = new Set<string>();
  readonly #later = new Map<string, { readonly at: number; readonly cancel: () => void }>();
  readonly #backoffs = new Map<string, Backoff>();
  #refill: (() => void) | undefined;
  #begun = 0;
  #stopped = false;
  #finished: PromiseWithResolvers<void> | undefined;

  constructor(options: WorkqueueOptions) {
    this.#work = options.work;
    this.#parallel = options.parallel ?? PARALLEL;
    this.#limits = options.backoff ?? RETRY;
    this.#clock = options.clock ?? SYSTEM_CLOCK;
    this.#random = options.random ?? Math.random;
    this.#tokens = new TokenBucket(
      options.perSecond ?? PER_SECOND,
      options.burst ?? BURST,
      this.#clock.now(),
    );
  }

  /** How many keys are due, waiting for later, or being worked on. */
  get size(): { readonly due: number; readonly later: number; readonly running: number } {
    const due = this.#due.size + this.#unhurried.size;
    return { due, later: this.#later.size, running: this.#running.size };
  }

  /** As soon as possible. A retry that waits is brought forward: something has changed. */
  add(key: string): void {
    if (this.#stopped) return;
    this.#forgetLater(key);
    this.#unhurried.delete(key);
    if (this.#running.has(key)) this.#again.add(key);
    else this.#due.add(key);
    this.#run();
  }

  /** Behind all that was added because something has changed: somebody waits for that. */
  addUnhurried(key: string): void {
    if (this.#stopped || this.#due.has(key)) return;
    this.#forgetLater(key);
    if (this.#running.has(key)) this.#again.add(key);
    else this.#unhurried.add(key);
    this.#run();
  }

  /** Not before so many milliseconds; the earliest of several times counts. */
  after(key: string, ms: number): void {
    if (this.#stopped || this.#due.has(key) || this.#unhurried.has(key)) return;
    const at = this.#clock.now() + ms;
    const known = this.#later.get(key);
    if (known !== undefined && known.at <= at) return;
    this.#forgetLater(key);
    const cancel = this.#clock.after(ms, () => {
      this.#later.delete(key);
      this.add(key);
    });
    this.#later.set(key, { at, cancel });
  }

  /** Nothing new is begun. Resolves when what is under way has ended. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { cancel } of this.#later.values()) cancel();
    this.#later.clear();
    this.#due.clear();
    this.#unhurried.clear();
    this.#again.clear();
    this.#refill?.();
    if (this.#running.size === 0) return;
    this.#finished ??= Promise.withResolvers();
    await this.#finished.promise;
  }

  #run(): void {
    while (this.#running.size < this.#parallel) {
      const key = this.#next();
      if (key === undefined) return;
      const wait = this.#tokens.take(this.#clock.now());
      if (wait > 0) {
        this.#refill ??= this.#clock.after(wait, () => {
          this.#refill = undefined;
          this.#run();
        });
        return;
      }
      this.#begun += 1;
      this.#due.delete(key);
      this.#unhurried.delete(key);
      this.#running.add(key);
      void this.#one(key);
    }
  }

  #next(): string | undefined {
    const [hurried] = this.#due;
    const [unhurried] = this.#unhurried;
    return this.#begun % FAIR === FAIR - 1 ? (unhurried ?? hurried) : (hurried ?? unhurried);
  }

  async #one(key: string): Promise<void> {
    // Work should not throw; where it does, it has failed, and only this key.
    const result = await this.#work(key).catch((): WorkResult => ({ retry: true }));
    this.#running.delete(key);
    if (this.#stopped) {
      if (this.#running.size === 0) this.#finished?.resolve();
      return;
    }
    if ("retry" in result) {
      const backoff = this.#backoffs.get(key) ?? new Backoff(this.#random, this.#limits);
      this.#backoffs.set(key, backoff);
      this.after(key, backoff.next(this.#clock.now()));
    } else {
      this.#backoffs.delete(key);
      if (result.afterMs !== undefined) this.after(key, result.afterMs);
    }
    if (this.#again.delete(key)) this.add(key);
    this.#run();
  }

  #forgetLater(key: string): void {
    this.#later.get(key)?.cancel();
    this.#later.delete(key);
  }
}

/** So many at once, and so many a second in the long run. Told the time. */
export class TokenBucket {
  readonly #perMs: number;
  readonly #most: number;
  #tokens: number;
  #since: number;

  constructor(perSecond: number, burst: number, now: number) {
    this.#perMs = perSecond / 1_000;
    this.#most = burst;
    this.#tokens = burst;
    this.#since = now;
  }

  /** Zero where one was taken, else how many milliseconds until there is one. */
  take(now: number): number {
    this.#tokens = Math.min(this.#most, this.#tokens + (now - this.#since) * this.#perMs);
    this.#since = now;
    if (this.#tokens < 1) return Math.max(1, Math.ceil((1 - this.#tokens) / this.#perMs));
    this.#tokens -= 1;
    return 0;
  }

  /** Whether it is as if nothing had ever been taken. */
  full(now: number): boolean {
    return this.#tokens + (now - this.#since) * this.#perMs >= this.#most;
  }
}
