import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { Workqueue, type WorkqueueClock, type WorkqueueOptions, type WorkResult } from "./workqueue.ts";

/** A clock that the test advances. */
class FakeClock implements WorkqueueClock {
  #time = 0;
  #calls: { readonly at: number; readonly call: () => void }[] = [];

  readonly now = () => this.#time;
  readonly after = (ms: number, call: () => void) => {
    const entry = { at: this.#time + ms, call };
    this.#calls.push(entry);
    return () => {
      this.#calls = this.#calls.filter((one) => one !== entry);
    };
  };

  async pass(ms: number): Promise<void> {
    const until = this.#time + ms;
    for (;;) {
      await flush();
      const [next] = this.#calls.filter(({ at }) => at <= until).sort((a, b) => a.at - b.at);
      if (next === undefined) break;
      this.#time = Math.max(this.#time, next.at);
      this.#calls = this.#calls.filter((one) => one !== next);
      next.call();
    }
    this.#time = until;
  }
}

async function flush(): Promise<void> {
  for (let i = 0; i < 20; i++) await Promise.resolve();
}

const DONE: WorkResult = { done: true };
const RETRY: WorkResult = { retry: true };

function queueWith(
  work: (key: string) => Promise<WorkResult> | WorkResult,
  options: Partial<WorkqueueOptions<string>> = {},
) {
  const clock = new FakeClock();
  const started: string[] = [];
  const queue = new Workqueue<string>({
    identity: (item) => item,
    clock,
    random: () => 1,
    ...options,
    work: async (key) => {
      started.push(`${clock.now()} ${key}`);
      return work(key);
    },
  });
  return { clock, queue, started };
}

describe("low priority items", () => {
  const keysOf = (started: readonly string[]) => started.map((line) => line.split(" ")[1]);

  test("are processed after all others, except for one in four", async () => {
    const { queue, started, clock } = queueWith(() => DONE, { parallel: 1, perSecond: 1, burst: 1 });
    for (const key of ["u1", "u2", "u3"]) queue.addLowPriority(key);
    for (const key of ["a", "b", "c", "d", "e", "f"]) queue.add(key);
    expect(queue.size.due).toBe(8);
    await clock.pass(20_000);
    expect(keysOf(started)).toEqual(["u1", "a", "b", "u2", "c", "d", "e", "u3", "f"]);
  });

  test("merge with a normal item of the same identity", async () => {
    const { queue, started, clock } = queueWith(() => DONE, { parallel: 1, perSecond: 1, burst: 1 });
    queue.add("first");
    queue.addLowPriority("x");
    queue.addLowPriority("y");
    queue.add("y");
    queue.addLowPriority("y");
    await clock.pass(20_000);
    expect(keysOf(started)).toEqual(["first", "y", "x"]);
  });

  test("are processed again if added while running, bring a retry forward, and are dropped by a stop", async () => {
    const gate = Promise.withResolvers<WorkResult>();
    const results: (WorkResult | Promise<WorkResult>)[] = [gate.promise, RETRY, DONE];
    const { queue, started, clock } = queueWith(() => results.shift() ?? DONE, { parallel: 1 });
    queue.add("x");
    queue.addLowPriority("x");
    gate.resolve(DONE);
    await flush();
    expect(keysOf(started)).toEqual(["x", "x"]);
    expect(queue.size).toEqual({ due: 0, later: 1, running: 0 });
    queue.addLowPriority("x");
    await flush();
    expect(keysOf(started)).toEqual(["x", "x", "x"]);
    expect(queue.size).toEqual({ due: 0, later: 0, running: 0 });
    void queue.stop();
    queue.addLowPriority("x");
    await clock.pass(1_000);
    expect(started).toHaveLength(3);
  });
});

test("an item that is added twice is processed once", async () => {
  const gate = Promise.withResolvers<WorkResult>();
  const { queue, started } = queueWith((key) => (key === "slow" ? gate.promise : DONE), { parallel: 1 });
  for (const key of ["slow", "a", "b", "a", "b", "a"]) queue.add(key);
  expect(queue.size).toEqual({ due: 2, later: 0, running: 1 });
  gate.resolve(DONE);
  await flush();
  expect(started).toEqual(["0 slow", "0 a", "0 b"]);
});

test("an item that is added while it is processed is processed again, never concurrently", async () => {
  const gates: PromiseWithResolvers<WorkResult>[] = [];
  const { queue, started } = queueWith(() => {
    const gate = Promise.withResolvers<WorkResult>();
    gates.push(gate);
    return gate.promise;
  });
  for (let i = 0; i < 3; i++) queue.add("a");
  await flush();
  expect(started).toHaveLength(1);
  gates[0]?.resolve(DONE);
  await flush();
  expect(started).toHaveLength(2);
  gates[1]?.resolve(DONE);
  await flush();
  expect(started).toHaveLength(2);
});

test("retries back off from 0.2 s up to five minutes, and start over after a success", async () => {
  let fails = 13;
  const { queue, clock, started } = queueWith(() => (fails-- > 0 ? RETRY : DONE));
  queue.add("a");
  await clock.pass(3_600_000);
  const times = started.map((entry) => Number(entry.split(" ")[0]));
  const gaps = times.slice(1).map((time, i) => time - (times[i] ?? 0));
  expect(gaps).toEqual([
    200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 102_400, 204_800, 300_000, 300_000,
  ]);
  fails = 1;
  queue.add("a");
  await clock.pass(250);
  expect(started).toHaveLength(16);
});

test("half of each backoff is random", async () => {
  const { queue, clock, started } = queueWith(() => RETRY, { random: () => 0 });
  queue.add("a");
  await clock.pass(100);
  expect(started).toEqual(["0 a", "100 a"]);
});

test("work that throws is retried, and delays no other item", async () => {
  const { queue, clock, started } = queueWith((key) => {
    if (key === "bad") throw new Error("broken");
    return DONE;
  });
  for (const key of ["bad", "good"]) queue.add(key);
  await clock.pass(200);
  expect(started).toEqual(["0 bad", "0 good", "200 bad"]);
});

test("a change brings a delayed retry forward", async () => {
  const { queue, clock, started } = queueWith(() => RETRY);
  queue.add("a");
  await clock.pass(50);
  queue.add("a");
  await clock.pass(0);
  expect(started).toEqual(["0 a", "50 a"]);
});

test("of several delays the earliest counts", async () => {
  const { queue, clock, started } = queueWith(() => DONE);
  queue.addAfter("a", 5_000);
  queue.addAfter("a", 1_000);
  queue.addAfter("a", 9_000);
  await clock.pass(999);
  expect(started).toEqual([]);
  await clock.pass(20_000);
  expect(started).toEqual(["1000 a"]);
});

test("work may requeue its item", async () => {
  let left = 2;
  const { queue, clock, started } = queueWith(() => (left-- > 0 ? { done: true, afterMs: 30_000 } : DONE));
  queue.add("a");
  await clock.pass(600_000);
  expect(started).toEqual(["0 a", "30000 a", "60000 a"]);
});

test("no more items are started than the rate allows", async () => {
  const { queue, clock, started } = queueWith(() => DONE, { perSecond: 2, burst: 3 });
  for (let i = 0; i < 7; i++) queue.add(`k${i}`);
  await clock.pass(10_000);
  expect(started).toEqual(["0 k0", "0 k1", "0 k2", "500 k3", "1000 k4", "1500 k5", "2000 k6"]);
});

test("stop starts nothing more, and waits for running items", async () => {
  const gate = Promise.withResolvers<WorkResult>();
  const { queue, clock, started } = queueWith(() => gate.promise, { parallel: 1 });
  for (const key of ["a", "b"]) queue.add(key);
  queue.addAfter("c", 10);
  let stopped = false;
  const stopping = queue.stop().then(() => {
    stopped = true;
  });
  await clock.pass(1_000);
  expect(stopped).toBe(false);
  gate.resolve(RETRY);
  await stopping;
  queue.add("d");
  await clock.pass(1_000_000);
  expect(started).toEqual(["0 a"]);
});

test("every caller of stop waits for running items, and no longer", async () => {
  const gate = Promise.withResolvers<WorkResult>();
  const { queue } = queueWith(() => gate.promise);
  queue.add("a");
  const stopped: string[] = [];
  for (const who of ["first", "second"]) void queue.stop().then(() => stopped.push(who));
  await flush();
  expect(stopped).toEqual([]);
  gate.resolve(DONE);
  await flush();
  expect(stopped).toEqual(["first", "second"]);
});

test.each([
  ["the longest delay of a timer", 2 ** 31 - 1],
  ["a millisecond more", 2 ** 31],
  ["a year", 365 * 86_400_000],
])("long delays are kept in full, and can be cancelled: %s", async (_, ms) => {
  vi.useFakeTimers();
  try {
    const started: string[] = [];
    const queue = new Workqueue<string>({
      identity: (item) => item,
      work: async (key) => {
        started.push(key);
        return DONE;
      },
    });
    queue.addAfter("a", ms);
    await vi.advanceTimersByTimeAsync(ms - 1);
    expect(started).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(started).toEqual(["a"]);
    queue.addAfter("b", ms);
    await vi.advanceTimersByTimeAsync(ms - 1);
    await queue.stop();
    expect(vi.getTimerCount()).toBe(0);
    expect(started).toEqual(["a"]);
  } finally {
    vi.useRealTimers();
  }
});

test("no item is processed concurrently with itself, and no change is missed", async () => {
  const action = fc.record({
    key: fc.constantFrom("a", "b", "c"),
    gap: fc.nat(400),
    takes: fc.nat(300),
    fails: fc.boolean(),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(action, { maxLength: 30 }),
      fc.integer({ min: 1, max: 3 }),
      async (actions, parallel) => {
        const clock = new FakeClock();
        const running = new Set<string>();
        /** When each key was last started, and last added. */
        const started = new Map<string, number>();
        const added = new Map<string, number>();
        let order = 0;
        const takes = new Map<string, { readonly takes: number; readonly fails: boolean }>(
          actions.map(({ key, takes, fails }) => [key, { takes, fails }]),
        );
        const queue = new Workqueue<string>({
          identity: (item) => item,
          clock,
          random: () => 0.5,
          parallel,
          work: async (key) => {
            expect(running.has(key)).toBe(false);
            running.add(key);
            expect(running.size).toBeLessThanOrEqual(parallel);
            started.set(key, ++order);
            const { takes: ms = 0, fails = false } = takes.get(key) ?? {};
            takes.set(key, { takes: ms, fails: false });
            await new Promise<void>((resolve) => clock.after(ms, resolve));
            running.delete(key);
            return fails ? RETRY : DONE;
          },
        });
        for (const { key, gap } of actions) {
          added.set(key, order);
          queue.add(key);
          await clock.pass(gap);
        }
        await clock.pass(1_000_000);
        for (const [key, when] of added) expect(started.get(key)).toBeGreaterThan(when);
        expect(queue.size).toEqual({ due: 0, later: 0, running: 0 });
      },
    ),
    { numRuns: 100 },
  );
});
