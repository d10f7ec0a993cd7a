import type { EventToWrite } from "../core/effects.ts";
import { TokenBucket } from "./queue.ts";

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
}

export const EVENT_LIMITS: EventLimits = {
  series: 2_000,
  quietMs: 360_000,
  recountMs: 30_000,
  burst: 25,
  refillMs: 300_000,
};

/** The same thing said of the same object, so many times. */
export interface EventSeries {
  readonly event: EventToWrite;
  readonly count: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** The name of the Event, once there is one. */
  readonly name: string | undefined;
}

type Entry = {
  -readonly [Key in keyof EventSeries]: EventSeries[Key];
} & { told: number; toldAt: number };

/**
 * What is to be said to the cluster in events: the same again only counts up, too much about one object is dropped, and so is what
 * does not fit. Pure but for what it remembers; times are given.
 */
export class EventBook {
  readonly #limits: EventLimits;
  readonly #entries = new Map<string, Entry>();
  readonly #sources = new Map<string, TokenBucket>();
  #dropped = 0;

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
    const fresh = { count: 1, firstAt: now, lastAt: now, name: undefined, told: 0, toldAt: now };
    this.#entries.set(key, { event, ...fresh });
  }

  /** What is to be written now, the oldest first. */
  due(now: number, most: number): EventSeries[] {
    const due: Entry[] = [];
    for (const entry of this.#entries.values()) {
      if (due.length >= most) break;
      if (entry.told === entry.count) continue;
      if (entry.told === 0 || now - entry.toldAt >= this.#limits.recountMs) due.push(entry);
    }
    return due.map((entry) => ({ ...entry }));
  }

  /** Whether anything will ever be due. */
  get pending(): boolean {
    for (const { told, count } of this.#entries.values()) if (told < count) return true;
    return false;
  }

  /** A series was written as it was given out; `name` is its Event's. `undefined`: that Event is gone, it begins anew. */
  told(series: EventSeries, name: string | undefined, now: number): void {
    const entry = this.#entries.get(keyOf(series.event));
    if (entry === undefined) return;
    entry.name = name;
    entry.told = name === undefined ? 0 : series.count;
    entry.toldAt = now;
  }

  /** A series that can't be written. */
  drop(series: EventSeries): void {
    const key = keyOf(series.event);
    const entry = this.#entries.get(key);
    if (entry !== undefined) this.#remove(key, entry);
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
  return JSON.stringify([regarding.kind, regarding.namespace ?? "", regarding.name, type, reason, message]);
}
