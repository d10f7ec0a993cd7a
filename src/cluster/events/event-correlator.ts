import type { EventToWrite } from "../../core/decision/finding.ts";
import { isAboutPolicy } from "../../core/evaluate/effects.ts";
import { TokenBucket } from "../controller/token-bucket.ts";

export interface EventLimits {
  /** Series in memory. */
  readonly series: number;
  /** An event that did not recur for this long starts a new series. */
  readonly seriesTimeoutMs: number;
  /** The shortest interval between updates of a count: each is a write. */
  readonly updateMs: number;
  /** New series about one object at once, then one per `refillMs`: the spam filter of client-go's event correlator. */
  readonly burst: number;
  readonly refillMs: number;
  /** The same for events of unverified callers about all objects of a namespace that callers name. */
  readonly unverifiedBurst: number;
  readonly unverifiedRefillMs: number;
  /** The delay after a failed write, doubled after each further one. */
  readonly retryMs: number;
  /** Attempts in a row before a series is dropped. */
  readonly attempts: number;
}

export const EVENT_LIMITS: EventLimits = {
  series: 2_000,
  seriesTimeoutMs: 360_000,
  updateMs: 30_000,
  burst: 25,
  refillMs: 300_000,
  // Events last for an hour: 2,000 in a namespace, 2 MB in etcd. A rollout of 200 pods has room.
  unverifiedBurst: 200,
  unverifiedRefillMs: 2_000,
  // 8.5 minutes in total: older events are of no use.
  retryMs: 1_000,
  attempts: 10,
};

/** Equal events about one object, with their count. */
export interface EventSeries {
  /** Distinguishes it from an earlier series of equal events. */
  readonly id: number;
  readonly event: EventToWrite;
  readonly count: number;
  readonly firstAt: number;
  readonly lastAt: number;
  /** The name of the Event, once it is created. */
  readonly name: string | undefined;
}

type Entry = {
  -readonly [Key in keyof EventSeries]: EventSeries[Key];
} & {
  writtenCount: number;
  /** Not written earlier than this. */
  dueAt: number;
  /** Failed writes in a row. */
  failures: number;
};

/**
 * Aggregates equal events into series, drops events beyond the rate limits, and bounds its memory. No I/O and no clock:
 * callers pass a monotonic time in milliseconds.
 */
export class EventCorrelator {
  readonly #limits: EventLimits;
  readonly #entries = new Map<string, Entry>();
  readonly #sources = new Map<string, TokenBucket>();
  #dropped = 0;
  #lastId = 0;

  constructor(limits: EventLimits = EVENT_LIMITS) {
    this.#limits = limits;
  }

  /** Events never written, for a metric. */
  get dropped(): number {
    return this.#dropped;
  }

  /** The number of series that are kept. @visibleForTesting */
  get size(): number {
    return this.#entries.size;
  }

  record(event: EventToWrite, now: number): void {
    const key = keyOf(event);
    const known = this.#entries.get(key);
    if (known !== undefined && now - known.lastAt < this.#limits.seriesTimeoutMs) {
      known.count += 1;
      known.lastAt = now;
      return;
    }
    if (this.#buckets(event, now).some((bucket) => bucket.take(now) > 0)) {
      this.#dropped += 1;
      return;
    }
    if (known !== undefined) this.#remove(key, known);
    this.#makeRoom(now);
    const initial = {
      count: 1,
      firstAt: now,
      lastAt: now,
      name: undefined,
      writtenCount: 0,
      dueAt: now,
      failures: 0,
    };
    this.#entries.set(key, { id: ++this.#lastId, event, ...initial });
  }

  /** The series to write now, the longest due first, so that failing ones do not starve others. */
  due(now: number, limit: number): EventSeries[] {
    const due: Entry[] = [];
    for (const entry of this.#entries.values())
      if (entry.writtenCount < entry.count && entry.dueAt <= now) due.push(entry);
    due.sort((a, b) => a.dueAt - b.dueAt);
    return due.slice(0, limit).map((entry) => ({ ...entry }));
  }

  /** Whether any series is not written yet. */
  get pending(): boolean {
    for (const { writtenCount, count } of this.#entries.values()) if (writtenCount < count) return true;
    return false;
  }

  /** After a write; `name` is the Event's. `undefined`: the Event no longer exists and is created again. */
  written(series: EventSeries, name: string | undefined, now: number): void {
    const entry = this.#entryOf(series);
    if (entry === undefined) return;
    entry.name = name;
    entry.writtenCount = name === undefined ? 0 : series.count;
    entry.dueAt = name === undefined ? now : now + this.#limits.updateMs;
    entry.failures = 0;
  }

  /** After a transient failure. */
  failed(series: EventSeries, now: number): void {
    const entry = this.#entryOf(series);
    if (entry === undefined) return;
    entry.dueAt = now + this.#limits.retryMs * 2 ** entry.failures;
    entry.failures += 1;
    if (entry.failures >= this.#limits.attempts) this.drop(series);
  }

  /** After a broken connection: not counted as a failure, but other series come first. */
  deferred(series: EventSeries, now: number): void {
    const entry = this.#entryOf(series);
    if (entry !== undefined) entry.dueAt = now;
  }

  /** Gives up a series that can't be written. */
  drop(series: EventSeries): void {
    const entry = this.#entryOf(series);
    if (entry !== undefined) this.#remove(keyOf(series.event), entry);
  }

  /** `undefined` if the series was evicted or replaced in the meantime. */
  #entryOf({ id, event }: EventSeries): Entry | undefined {
    const entry = this.#entries.get(keyOf(event));
    return entry?.id === id ? entry : undefined;
  }

  #remove(key: string, { count, writtenCount }: Entry): void {
    this.#entries.delete(key);
    this.#dropped += count - writtenCount;
  }

  #makeRoom(now: number): void {
    if (this.#entries.size < this.#limits.series) return;
    for (const [key, entry] of this.#entries) {
      if (now - entry.lastAt >= this.#limits.seriesTimeoutMs) this.#remove(key, entry);
    }
    for (const [key, entry] of this.#entries) {
      if (this.#entries.size < this.#limits.series) return;
      this.#remove(key, entry);
    }
  }

  #buckets(event: EventToWrite, now: number): TokenBucket[] {
    const { kind, namespace = "", name } = event.regarding;
    const { burst, refillMs, unverifiedBurst, unverifiedRefillMs } = this.#limits;
    const object = this.#bucket(JSON.stringify([kind, namespace, name]), burst, refillMs, now);
    if (event.unverified !== true || isAboutPolicy(event)) return [object];
    return [this.#bucket(JSON.stringify([namespace]), unverifiedBurst, unverifiedRefillMs, now), object];
  }

  #bucket(key: string, burst: number, refillMs: number, now: number): TokenBucket {
    const known = this.#sources.get(key);
    if (known !== undefined) return known;
    if (this.#sources.size >= this.#limits.series) {
      for (const [other, bucket] of this.#sources) if (bucket.full(now)) this.#sources.delete(other);
      // None is full: evicts the oldest, which may exceed its limit once.
      const [oldest] = this.#sources.keys();
      if (this.#sources.size >= this.#limits.series && oldest !== undefined) this.#sources.delete(oldest);
    }
    const bucket = new TokenBucket(1_000 / refillMs, burst, now);
    this.#sources.set(key, bucket);
    return bucket;
  }
}

function keyOf({ regarding, type, reason, message, unverified, ...by }: EventToWrite): string {
  const { kind, namespace = "", name, uid = "" } = regarding;
  // An event records the generation of its policy, so a series has one.
  const recorded = by.rule === undefined ? [] : [by.rule, by.policy?.generation ?? 0];
  return JSON.stringify([
    kind,
    namespace,
    name,
    uid,
    type,
    reason,
    message,
    unverified ?? false,
    ...recorded,
  ]);
}
