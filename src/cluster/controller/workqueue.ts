import { Backoff, type BackoffLimits } from "../client/retry.ts";
import { TokenBucket } from "./token-bucket.ts";

/** Time as the queue sees it, so that tests can advance it. */
export interface WorkqueueClock {
  /** Milliseconds, any origin. */
  readonly now: () => number;
  /** Calls back once after this number of milliseconds; the returned function cancels it. */
  readonly after: (ms: number, call: () => void) => () => void;
}

/** Node fires a timer immediately if its delay is longer, some 25 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

const SYSTEM_CLOCK: WorkqueueClock = {
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

/** The result of one item. */
export type WorkResult =
  | { readonly done: true /** Process it again after this time. */; readonly afterMs?: number }
  /** Process it again after a backoff that grows with each consecutive failure. */
  | { readonly retry: true };

export interface WorkqueueOptions<Item> {
  /** Items of equal identity are one item. */
  readonly identity: (item: Item) => string;
  readonly work: (item: Item) => Promise<WorkResult>;
  /** Items that are processed at the same time. @default 4 */
  readonly parallel?: number;
  /** Items started in a second, in the long run. @default 50 */
  readonly perSecond?: number;
  /** Items that may be started at once after an idle time. @default 100 */
  readonly burst?: number;
  readonly backoff?: BackoffLimits;
  readonly clock?: WorkqueueClock;
  readonly random?: () => number;
}

/**
 * The first retry comes soon, because most failures are a conflict with a write that has completed by then; the longest
 * delay is short enough that usher need not be restarted to notice a repaired cluster.
 */
const RETRY: BackoffLimits = {
  firstMs: 200,
  longestMs: 300_000,
  forgetMs: Number.POSITIVE_INFINITY,
};

const PARALLEL = 4;
/** A label on each of 5,000 nodes takes less than two minutes, at a rate that no API server notices. */
const PER_SECOND = 50;
const BURST = 100;
/** Every Nth item is a low priority one, so that these finish in a busy cluster, too. */
const FAIR = 4;

/**
 * A queue of items with retries and a rate limit, as client-go's workqueue: an item that is added twice before it is
 * processed is processed once, one that is added while it is processed is processed once more, and no item is processed
 * twice at the same time. A failing item backs off by itself and delays no other. Low priority items are processed
 * after all others, but never starve.
 */
export class Workqueue<Item> {
  readonly #identity: (item: Item) => string;
  readonly #work: (item: Item) => Promise<WorkResult>;
  readonly #parallel: number;
  readonly #tokens: TokenBucket;
  readonly #limits: BackoffLimits;
  readonly #clock: WorkqueueClock;
  readonly #random: () => number;
  /** All by identity. */
  readonly #due = new Map<string, Item>();
  readonly #lowPriority = new Map<string, Item>();
  readonly #running = new Set<string>();
  /** Added while being processed. */
  readonly #dirty = new Set<string>();
  readonly #delayed = new Map<string, { readonly at: number; readonly cancel: () => void }>();
  readonly #backoffs = new Map<string, Backoff>();
  #refill: (() => void) | undefined;
  #started = 0;
  #stopped = false;
  #drained: PromiseWithResolvers<void> | undefined;

  constructor(options: WorkqueueOptions<Item>) {
    this.#identity = options.identity;
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

  /** How many items are due, delayed, or being processed. */
  get size(): { readonly due: number; readonly later: number; readonly running: number } {
    const due = this.#due.size + this.#lowPriority.size;
    return { due, later: this.#delayed.size, running: this.#running.size };
  }

  /** As soon as possible. A delayed retry is brought forward: something has changed. */
  add(item: Item): void {
    if (this.#stopped) return;
    const id = this.#identity(item);
    this.#cancelDelayed(id);
    this.#lowPriority.delete(id);
    if (this.#running.has(id)) this.#dirty.add(id);
    else this.#due.set(id, item);
    this.#run();
  }

  /** After all items that were added because of a change. */
  addLowPriority(item: Item): void {
    const id = this.#identity(item);
    if (this.#stopped || this.#due.has(id)) return;
    this.#cancelDelayed(id);
    if (this.#running.has(id)) this.#dirty.add(id);
    else this.#lowPriority.set(id, item);
    this.#run();
  }

  /** Not before this number of milliseconds; the earliest of several times counts. */
  addAfter(item: Item, ms: number): void {
    const id = this.#identity(item);
    if (this.#stopped || this.#due.has(id) || this.#lowPriority.has(id)) return;
    const at = this.#clock.now() + ms;
    const delayed = this.#delayed.get(id);
    if (delayed !== undefined && delayed.at <= at) return;
    this.#cancelDelayed(id);
    const cancel = this.#clock.after(ms, () => {
      this.#delayed.delete(id);
      this.add(item);
    });
    this.#delayed.set(id, { at, cancel });
  }

  /** Starts nothing new. Resolves when no item is being processed. */
  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { cancel } of this.#delayed.values()) cancel();
    this.#delayed.clear();
    this.#due.clear();
    this.#lowPriority.clear();
    this.#dirty.clear();
    this.#refill?.();
    if (this.#running.size === 0) return;
    this.#drained ??= Promise.withResolvers();
    await this.#drained.promise;
  }

  #run(): void {
    while (this.#running.size < this.#parallel) {
      const next = this.#next();
      if (next === undefined) return;
      const wait = this.#tokens.take(this.#clock.now());
      if (wait > 0) {
        this.#refill ??= this.#clock.after(wait, () => {
          this.#refill = undefined;
          this.#run();
        });
        return;
      }
      const [id, item] = next;
      this.#started += 1;
      this.#due.delete(id);
      this.#lowPriority.delete(id);
      this.#running.add(id);
      void this.#process(id, item);
    }
  }

  #next(): [id: string, item: Item] | undefined {
    const [due] = this.#due;
    const [low] = this.#lowPriority;
    return this.#started % FAIR === FAIR - 1 ? (low ?? due) : (due ?? low);
  }

  async #process(id: string, item: Item): Promise<void> {
    // Work should not throw; if it does, only this item has failed.
    const result = await this.#work(item).catch((): WorkResult => ({ retry: true }));
    this.#running.delete(id);
    if (this.#stopped) {
      if (this.#running.size === 0) this.#drained?.resolve();
      return;
    }
    if ("retry" in result) {
      const backoff = this.#backoffs.get(id) ?? new Backoff(this.#random, this.#limits);
      this.#backoffs.set(id, backoff);
      this.addAfter(item, backoff.next(this.#clock.now()));
    } else {
      this.#backoffs.delete(id);
      if (result.afterMs !== undefined) this.addAfter(item, result.afterMs);
    }
    if (this.#dirty.delete(id)) this.add(item);
    this.#run();
  }

  #cancelDelayed(id: string): void {
    this.#delayed.get(id)?.cancel();
    this.#delayed.delete(id);
  }
}
