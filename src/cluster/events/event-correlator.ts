import type { EventToWrite } from "../../core/evaluate/effects.ts";
import { TokenBucket } from "../controller/token-bucket.ts";

export interface EventLimits {
  /** Series that are remembered at once. */
  readonly series: number;
  /** An event that did not come again for so long begins a new series. */
  readonly quietMs: number;
  /** A count is brought up to date at most so often: each time is a write. */
  readonly recountMs: number;
  /** New series about one object at once, and then one for each `refillMs`. As Kubernetes' own components limit themselves. */
  readonly burst: number;
  readonly refillMs: number;
  /** How long one waits that the API server could not take, after the first time; twice as long after each other. */
  readonly retryMs: number;
  /** So many times in a row it is tried. */
  readonly attempts: number;
}

export const EVENT_LIMITS: EventLimits = {
  series: 2_000,
  quietMs: 360_000,
  recountMs: 30_000,
  burst: 25,
  refillMs: 300_000,
  // Eight and a half minutes: what is older than that is no news.
  retryMs: 1_000,
  attempts: 10,
};

/** The same thing said of the same object, so many times. */
export interface EventSeries {
  /** Tells it from an earlier one of the same words. */
  readonly id: number;
  readonly event: EventToWrite;
  readonly count: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** The name of the Event, once there is one. */
  readonly name: string | undefined;
}

type Entry = {
  -readonly [Key in keyof EventSeries]: EventSeries[Key];
} & {
  told: number;
  /** Not written before. */
  dueAt: number;
  /** How many times in a row the API server could not take it. */
  refusals: number;
};

/**
 * What is to be said to the cluster in events: the same again only counts up, too much about one object is dropped, and so is what
 * does not fit. Pure but for what it remembers; times are given, in milliseconds of any origin that never go back.
 */
export class EventCorrelator {
  readonly #limits: EventLimits;
  readonly #entries = new Map<string, Entry>();
  readonly #sources = new Map<string, TokenBucket>();
  #dropped = 0;
  #made = 0;

  constructor(limits: EventLimits = EVENT_LIMITS) {
    this.#limits = limits;
  }

  /** How many were never told, for a metric. */
  get dropped(): number {
    return this.#dropped;
  }

  get size(): number {
    return this.#entries.size;
  }

  note(event: EventToWrite, now: number): void {
    const key = keyOf(event);
    const known = this.#entries.get(key);
    if (known !== undefined && now - known.lastAt < this.#limits.quietMs) {
      known.count += 1;
      known.lastAt = now;
      return;
    }
    if (this.#bucket(event, now).take(now) > 0) {
      this.#dropped += 1;
      return;
    }
    if (known !== undefined) this.#remove(key, known);
    this.#makeRoom(now);
    const fresh = { count: 1, firstAt: now, lastAt: now, name: undefined, told: 0, dueAt: now, refusals: 0 };
    this.#entries.set(key, { id: ++this.#made, event, ...fresh });
  }

  /** What is to be written now. First comes what has been due for longest, so none that fails keeps others waiting. */
  due(now: number, most: number): EventSeries[] {
    const due: Entry[] = [];
    for (const entry of this.#entries.values())
      if (entry.told < entry.count && entry.dueAt <= now) due.push(entry);
    due.sort((a, b) => a.dueAt - b.dueAt);
    return due.slice(0, most).map((entry) => ({ ...entry }));
  }

  /** Whether anything will ever be due. */
  get pending(): boolean {
    for (const { told, count } of this.#entries.values()) if (told < count) return true;
    return false;
  }

  /** A series was written as it was given out; `name` is its Event's. `undefined`: that Event is gone, it begins anew. */
  told(series: EventSeries, name: string | undefined, now: number): void {
    const entry = this.#entryOf(series);
    if (entry === undefined) return;
    entry.name = name;
    entry.told = name === undefined ? 0 : series.count;
    entry.dueAt = name === undefined ? now : now + this.#limits.recountMs;
    entry.refusals = 0;
  }

  /** A series that the API server could not take just now. */
  refused(series: EventSeries, now: number): void {
    const entry = this.#entryOf(series);
    if (entry === undefined) return;
    entry.dueAt = now + this.#limits.retryMs * 2 ** entry.refusals;
    entry.refusals += 1;
    if (entry.refusals >= this.#limits.attempts) this.drop(series);
  }

  /** A series that nobody answered: it is not to blame, but others come first. */
  unanswered(series: EventSeries, now: number): void {
    const entry = this.#entryOf(series);
    if (entry !== undefined) entry.dueAt = now;
  }

  /** A series that can't be written. */
  drop(series: EventSeries): void {
    const entry = this.#entryOf(series);
    if (entry !== undefined) this.#remove(keyOf(series.event), entry);
  }

  /** `undefined` where it was forgotten meanwhile, or another of the same words has taken its place. */
  #entryOf({ id, event }: EventSeries): Entry | undefined {
    const entry = this.#entries.get(keyOf(event));
    return entry?.id === id ? entry : undefined;
  }

  #remove(key: string, { count, told }: Entry): void {
    this.#entries.delete(key);
    this.#dropped += count - told;
  }

  #makeRoom(now: number): void {
    if (this.#entries.size < this.#limits.series) return;
    for (const [key, entry] of this.#entries) {
      if (now - entry.lastAt >= this.#limits.quietMs) this.#remove(key, entry);
    }
    for (const [key, entry] of this.#entries) {
      if (this.#entries.size < this.#limits.series) return;
      this.#remove(key, entry);
    }
  }

  #bucket({ regarding }: EventToWrite, now: number): TokenBucket {
    const key = JSON.stringify([regarding.kind, regarding.namespace ?? "", regarding.name]);
    const known = this.#sources.get(key);
    if (known !== undefined) return known;
    if (this.#sources.size >= this.#limits.series) {
      for (const [one, bucket] of this.#sources) if (bucket.full(now)) this.#sources.delete(one);
      // All of them busy: the oldest is forgotten, which gives it a little more than its share.
      const [oldest] = this.#sources.keys();
      if (this.#sources.size >= this.#limits.series && oldest !== undefined) this.#sources.delete(oldest);
    }
    const bucket = new TokenBucket(1_000 / this.#limits.refillMs, this.#limits.burst, now);
    this.#sources.set(key, bucket);
    return bucket;
  }
}

function keyOf({ regarding, type, reason, message }: EventToWrite): string {
  const { kind, namespace = "", name, uid = "" } = regarding;
  return JSON.stringify([kind, namespace, name, uid, type, reason, message]);
}
