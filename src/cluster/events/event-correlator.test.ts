import fc from "fast-check";
import { expect, test } from "vitest";
import type { EventToWrite } from "../../core/evaluate/effects.ts";
import { EVENT_LIMITS, EventCorrelator, type EventSeries } from "./event-correlator.ts";

function event(changes: Partial<EventToWrite> = {}): EventToWrite {
  return {
    type: "Normal",
    reason: "Placed",
    regarding: { kind: "Pod", namespace: "shop", name: "web" },
    message: "placed",
    policy: undefined,
    ...changes,
  };
}

test("the same again only counts up", () => {
  const book = new EventCorrelator();
  for (let i = 0; i < 1_000; i++) book.note(event(), i);
  expect(book.due(1_000, 10)).toMatchObject([{ count: 1_000, firstAt: 0, lastAt: 999, name: undefined }]);
  expect(book.dropped).toBe(0);
});

test.each<[string, Partial<EventToWrite>]>([
  ["reason", { reason: "Refused" }],
  ["message", { message: "placed elsewhere" }],
  ["type", { type: "Warning" }],
  ["object", { regarding: { kind: "Pod", namespace: "shop", name: "api" } }],
])("another %s is another series", (_, changes) => {
  const book = new EventCorrelator();
  book.note(event(), 0);
  book.note(event(changes), 0);
  expect(book.due(0, 10)).toHaveLength(2);
});

test("what was told is due again only when it has come again, and not too often", () => {
  const book = new EventCorrelator();
  book.note(event(), 0);
  const [series] = book.due(0, 10);
  if (series === undefined) throw new Error("nothing due");
  book.told(series, "web.1", 0);
  expect(book.pending).toBe(false);
  book.note(event(), 1_000);
  expect(book.pending).toBe(true);
  expect(book.due(EVENT_LIMITS.recountMs - 1, 10)).toEqual([]);
  expect(book.due(EVENT_LIMITS.recountMs, 10)).toMatchObject([{ count: 2, name: "web.1" }]);
});

test("what came while it was being written is not lost", () => {
  const book = new EventCorrelator();
  book.note(event(), 0);
  const [series] = book.due(0, 10);
  if (series === undefined) throw new Error("nothing due");
  book.note(event(), 1);
  book.told(series, "web.1", 2);
  expect(book.due(EVENT_LIMITS.recountMs + 2, 10)).toMatchObject([{ count: 2 }]);
});

/** A book that holds one series, given out and then replaced by another of the same words. */
function replaced() {
  const book = new EventCorrelator();
  const again = EVENT_LIMITS.quietMs;
  book.note(event(), 0);
  const [old] = book.due(0, 10);
  if (old === undefined) throw new Error("nothing due");
  book.note(event(), again);
  return { book, old, again };
}

test.each<[string, (book: EventCorrelator, old: EventSeries, now: number) => void]>([
  ["told", (book, old, now) => book.told(old, "web.1", now)],
  ["told that it is gone", (book, old, now) => book.told(old, undefined, now)],
  ["refused", (book, old, now) => book.refused(old, now)],
  ["not answered", (book, old, now) => book.unanswered(old, now)],
  ["dropped", (book, old) => book.drop(old)],
])("what comes of a series that was replaced meanwhile is nothing to the new one: %s", (_, happens) => {
  const { book, old, again } = replaced();
  const before = { due: book.due(again, 10), dropped: book.dropped };
  for (let i = 0; i < 20; i++) happens(book, old, again);
  expect({ due: book.due(again, 10), dropped: book.dropped }).toEqual(before);
  expect(before.due).toMatchObject([{ count: 1, firstAt: again, name: undefined }]);
});

test("what was refused waits longer each time, and is dropped in the end", () => {
  const book = new EventCorrelator();
  book.note(event(), 0);
  book.note(event(), 0);
  const gaps: number[] = [];
  let last = 0;
  for (let now = 0; now < 2_000 * EVENT_LIMITS.retryMs; now += EVENT_LIMITS.retryMs) {
    const [series] = book.due(now, 10);
    if (series === undefined) continue;
    gaps.push((now - last) / EVENT_LIMITS.retryMs);
    last = now;
    book.refused(series, now);
  }
  expect(gaps).toEqual([0, 1, 2, 4, 8, 16, 32, 64, 128, 256]);
  expect(book.dropped).toBe(2);
});

test("what was told begins to be patient anew", () => {
  const book = new EventCorrelator({ ...EVENT_LIMITS, attempts: 2, recountMs: 0 });
  const one = (now: number) => {
    const [series] = book.due(now, 1);
    if (series === undefined) throw new Error("nothing due");
    return series;
  };
  book.note(event(), 0);
  book.refused(one(0), 0);
  book.told(one(1_000), "web.1", 1_000);
  book.note(event(), 1_000);
  book.refused(one(1_000), 1_000);
  expect(book.dropped).toBe(0);
  book.refused(one(2_000), 2_000);
  expect(book.dropped).toBe(1);
});

test("what nobody answered is kept for as long as it takes, but waits behind the others", () => {
  const book = new EventCorrelator();
  for (const message of ["first", "second"]) book.note(event({ message }), 0);
  const order: string[] = [];
  for (let now = 1; now <= 50; now++) {
    for (const series of book.due(now, 1)) {
      order.push(series.event.message);
      book.unanswered(series, now);
    }
  }
  expect(order).toEqual(Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? "first" : "second")));
  expect(book).toMatchObject({ size: 2, dropped: 0 });
});

test("after a quiet time a new series begins", () => {
  const book = new EventCorrelator();
  book.note(event(), 0);
  book.note(event(), EVENT_LIMITS.quietMs);
  expect(book.due(EVENT_LIMITS.quietMs, 10)).toMatchObject([{ count: 1, firstAt: EVENT_LIMITS.quietMs }]);
});

test("too much about one object is dropped and counted; others are not touched by it", () => {
  const book = new EventCorrelator();
  for (let i = 0; i < 100; i++) book.note(event({ message: `message ${i}` }), 0);
  book.note(event({ regarding: { kind: "Pod", name: "other" } }), 0);
  expect(book.size).toBe(EVENT_LIMITS.burst + 1);
  expect(book.dropped).toBe(100 - EVENT_LIMITS.burst);
  book.note(event({ message: "later" }), EVENT_LIMITS.refillMs);
  expect(book.size).toBe(EVENT_LIMITS.burst + 2);
});

test("its memory is bounded, and all that came is told, waiting or counted as dropped", () => {
  const limits = { ...EVENT_LIMITS, series: 5, burst: 3, recountMs: 0 };
  const note = fc.record({ name: fc.nat(12), message: fc.nat(5), gap: fc.nat(100_000), tell: fc.boolean() });
  fc.assert(
    fc.property(fc.array(note, { maxLength: 200 }), (notes) => {
      const book = new EventCorrelator(limits);
      const told = new Map<string, number>();
      let now = 0;
      for (const { name, message, gap, tell } of notes) {
        now += gap;
        book.note(event({ regarding: { kind: "Pod", name: `p${name}` }, message: `m${message}` }), now);
        expect(book.size).toBeLessThanOrEqual(5);
        for (const series of tell ? book.due(now, 2) : []) {
          const written = series.name ?? `event-${told.size}`;
          told.set(written, series.count);
          book.told(series, written, now);
        }
      }
      let accounted = book.dropped;
      for (const count of told.values()) accounted += count;
      for (const { count, name } of book.due(now, 100)) accounted += count - (told.get(name ?? "") ?? 0);
      expect(accounted).toBe(notes.length);
    }),
  );
});
