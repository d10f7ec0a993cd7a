import fc from "fast-check";
import { expect, test } from "vitest";
import type { EventToWrite } from "../../core/decision/finding.ts";
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

test("equal events count up", () => {
  const correlator = new EventCorrelator();
  for (let i = 0; i < 1_000; i++) correlator.record(event(), i);
  expect(correlator.due(1_000, 10)).toMatchObject([
    { count: 1_000, firstAt: 0, lastAt: 999, name: undefined },
  ]);
  expect(correlator.dropped).toBe(0);
});

test.each<[string, Partial<EventToWrite>]>([
  ["reason", { reason: "Refused" }],
  ["message", { message: "placed elsewhere" }],
  ["type", { type: "Warning" }],
  ["object", { regarding: { kind: "Pod", namespace: "shop", name: "api" } }],
])("another %s starts another series", (_, changes) => {
  const correlator = new EventCorrelator();
  correlator.record(event(), 0);
  correlator.record(event(changes), 0);
  expect(correlator.due(0, 10)).toHaveLength(2);
});

test("a written series is due again only after it recurred, and after the update interval", () => {
  const correlator = new EventCorrelator();
  correlator.record(event(), 0);
  const [series] = correlator.due(0, 10);
  if (series === undefined) throw new Error("nothing due");
  correlator.written(series, "web.1", 0);
  expect(correlator.pending).toBe(false);
  correlator.record(event(), 1_000);
  expect(correlator.pending).toBe(true);
  expect(correlator.due(EVENT_LIMITS.updateMs - 1, 10)).toEqual([]);
  expect(correlator.due(EVENT_LIMITS.updateMs, 10)).toMatchObject([{ count: 2, name: "web.1" }]);
});

test("events during a write are counted", () => {
  const correlator = new EventCorrelator();
  correlator.record(event(), 0);
  const [series] = correlator.due(0, 10);
  if (series === undefined) throw new Error("nothing due");
  correlator.record(event(), 1);
  correlator.written(series, "web.1", 2);
  expect(correlator.due(EVENT_LIMITS.updateMs + 2, 10)).toMatchObject([{ count: 2 }]);
});

/** A correlator with one series, which is handed out and then replaced by another with the same text. */
function replaced() {
  const correlator = new EventCorrelator();
  const again = EVENT_LIMITS.seriesTimeoutMs;
  correlator.record(event(), 0);
  const [old] = correlator.due(0, 10);
  if (old === undefined) throw new Error("nothing due");
  correlator.record(event(), again);
  return { correlator, old, again };
}

test.each<[string, (correlator: EventCorrelator, old: EventSeries, now: number) => void]>([
  ["written", (correlator, old, now) => correlator.written(old, "web.1", now)],
  ["written, but expired", (correlator, old, now) => correlator.written(old, undefined, now)],
  ["refused", (correlator, old, now) => correlator.failed(old, now)],
  ["not answered", (correlator, old, now) => correlator.deferred(old, now)],
  ["dropped", (correlator, old) => correlator.drop(old)],
])("the result of a replaced series does not affect the new one: %s", (_, happens) => {
  const { correlator, old, again } = replaced();
  const before = { due: correlator.due(again, 10), dropped: correlator.dropped };
  for (let i = 0; i < 20; i++) happens(correlator, old, again);
  expect({ due: correlator.due(again, 10), dropped: correlator.dropped }).toEqual(before);
  expect(before.due).toMatchObject([{ count: 1, firstAt: again, name: undefined }]);
});

test("a failed write backs off, and is dropped after the last attempt", () => {
  const correlator = new EventCorrelator();
  correlator.record(event(), 0);
  correlator.record(event(), 0);
  const gaps: number[] = [];
  let last = 0;
  for (let now = 0; now < 2_000 * EVENT_LIMITS.retryMs; now += EVENT_LIMITS.retryMs) {
    const [series] = correlator.due(now, 10);
    if (series === undefined) continue;
    gaps.push((now - last) / EVENT_LIMITS.retryMs);
    last = now;
    correlator.failed(series, now);
  }
  expect(gaps).toEqual([0, 1, 2, 4, 8, 16, 32, 64, 128, 256]);
  expect(correlator.dropped).toBe(2);
});

test("a successful write resets the back-off", () => {
  const correlator = new EventCorrelator({ ...EVENT_LIMITS, attempts: 2, updateMs: 0 });
  const one = (now: number) => {
    const [series] = correlator.due(now, 1);
    if (series === undefined) throw new Error("nothing due");
    return series;
  };
  correlator.record(event(), 0);
  correlator.failed(one(0), 0);
  correlator.written(one(1_000), "web.1", 1_000);
  correlator.record(event(), 1_000);
  correlator.failed(one(1_000), 1_000);
  expect(correlator.dropped).toBe(0);
  correlator.failed(one(2_000), 2_000);
  expect(correlator.dropped).toBe(1);
});

test("a series without response is kept, after the others", () => {
  const correlator = new EventCorrelator();
  for (const message of ["first", "second"]) correlator.record(event({ message }), 0);
  const order: string[] = [];
  for (let now = 1; now <= 50; now++) {
    for (const series of correlator.due(now, 1)) {
      order.push(series.event.message);
      correlator.deferred(series, now);
    }
  }
  expect(order).toEqual(Array.from({ length: 50 }, (_, i) => (i % 2 === 0 ? "first" : "second")));
  expect(correlator).toMatchObject({ size: 2, dropped: 0 });
});

test("after the series timeout a new series starts", () => {
  const correlator = new EventCorrelator();
  correlator.record(event(), 0);
  correlator.record(event(), EVENT_LIMITS.seriesTimeoutMs);
  expect(correlator.due(EVENT_LIMITS.seriesTimeoutMs, 10)).toMatchObject([
    { count: 1, firstAt: EVENT_LIMITS.seriesTimeoutMs },
  ]);
});

test("events beyond the limit of an object are dropped and counted; others are not affected", () => {
  const correlator = new EventCorrelator();
  for (let i = 0; i < 100; i++) correlator.record(event({ message: `message ${i}` }), 0);
  correlator.record(event({ regarding: { kind: "Pod", name: "other" } }), 0);
  expect(correlator.size).toBe(EVENT_LIMITS.burst + 1);
  expect(correlator.dropped).toBe(100 - EVENT_LIMITS.burst);
  correlator.record(event({ message: "later" }), EVENT_LIMITS.refillMs);
  expect(correlator.size).toBe(EVENT_LIMITS.burst + 2);
});

test("memory is bounded, and every event is written, pending or counted as dropped", () => {
  const limits = { ...EVENT_LIMITS, series: 5, burst: 3, updateMs: 0 };
  const input = fc.record({
    name: fc.nat(12),
    message: fc.nat(5),
    gap: fc.nat(100_000),
    write: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(input, { maxLength: 200 }), (inputs) => {
      const correlator = new EventCorrelator(limits);
      const counts = new Map<string, number>();
      let now = 0;
      for (const { name, message, gap, write } of inputs) {
        now += gap;
        correlator.record(
          event({ regarding: { kind: "Pod", name: `p${name}` }, message: `m${message}` }),
          now,
        );
        expect(correlator.size).toBeLessThanOrEqual(5);
        for (const series of write ? correlator.due(now, 2) : []) {
          const written = series.name ?? `event-${counts.size}`;
          counts.set(written, series.count);
          correlator.written(series, written, now);
        }
      }
      let accounted = correlator.dropped;
      for (const count of counts.values()) accounted += count;
      for (const { count, name } of correlator.due(now, 100))
        accounted += count - (counts.get(name ?? "") ?? 0);
      expect(accounted).toBe(inputs.length);
    }),
  );
});

test("unverified callers share the events of a namespace, and use none of another's or of usher's own", () => {
  const correlator = new EventCorrelator();
  const { unverifiedBurst, unverifiedRefillMs } = EVENT_LIMITS;
  const pod = (namespace: string, name: string, more: Partial<EventToWrite> = {}) =>
    event({ regarding: { kind: "Pod", namespace, name }, ...more });
  for (let i = 0; i < 2 * unverifiedBurst; i++)
    correlator.record(pod("shop", `${i}`, { unverified: true }), 0);
  expect(correlator.dropped).toBe(unverifiedBurst);
  correlator.record(pod("shop", "verified"), 0);
  correlator.record(pod("other", "web", { unverified: true }), 0);
  // The number of policies is their author's choice, not the caller's.
  const policy = { kind: "PodSchedulingPolicy", namespace: "shop", name: "pool" };
  correlator.record(event({ regarding: policy, policy, unverified: true }), 0);
  expect(correlator.dropped).toBe(unverifiedBurst);
  correlator.record(pod("shop", "late", { unverified: true }), unverifiedRefillMs);
  expect(correlator.dropped).toBe(unverifiedBurst);
});

test("an event of an unverified caller does not increase the count of usher's own", () => {
  const correlator = new EventCorrelator();
  correlator.record(event(), 0);
  correlator.record(event({ unverified: true }), 0);
  expect(correlator.due(0, 10)).toMatchObject([{ count: 1 }, { count: 1 }]);
});
