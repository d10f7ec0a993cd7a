import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { Workqueue, type WorkqueueClock, type WorkqueueOptions, type WorkResult } from "./workqueue.ts";

/** Time that passes when the test says so. */
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
  const begun: string[] = [];
  const queue = new Workqueue<string>({
    identity: (item) => item,
    clock,
    random: () => 1,
    ...options,
    work: async (key) => {
      begun.push(`${clock.now()} ${key}`);
      return work(key);
    },
  });
  return { clock, queue, begun };
}

describe("low priority items", () => {
  const keysOf = (begun: readonly string[]) => begun.map((line) => line.split(" ")[1]);

  test("comes behind what has changed, but for one in four", async () => {
    const { queue, begun, clock } = queueWith(() => DONE, { parallel: 1, perSecond: 1, burst: 1 });
    for (const key of ["u1", "u2", "u3"]) queue.addLowPriority(key);
    for (const key of ["a", "b", "c", "d", "e", "f"]) queue.add(key);
    expect(queue.size.due).toBe(8);
    await clock.pass(20_000);
    expect(keysOf(begun)).toEqual(["u1", "a", "b", "u2", "c", "d", "e", "u3", "f"]);
  });

  test("is done once with what has changed, whichever came first", async () => {
    const { queue, begun, clock } = queueWith(() => DONE, { parallel: 1, perSecond: 1, burst: 1 });
    queue.add("first");
    queue.addLowPriority("x");
    queue.addLowPriority("y");
    queue.add("y");
    queue.addLowPriority("y");
    await clock.pass(20_000);
    expect(keysOf(begun)).toEqual(["first", "y", "x"]);
  });

  test("is done once more where it is under way, brings a retry forward, and is dropped by a stop", async () => {
    const gate = Promise.withResolvers<WorkResult>();
    const results: (WorkResult | Promise<WorkResult>)[] = [gate.promise, RETRY, DONE];
    const { queue, begun, clock } = queueWith(() => results.shift() ?? DONE, { parallel: 1 });
    queue.add("x");
    queue.addLowPriority("x");
    gate.resolve(DONE);
    await flush();
    expect(keysOf(begun)).toEqual(["x", "x"]);
    expect(queue.size).toEqual({ due: 0, later: 1, running: 0 });
    queue.addLowPriority("x");
    await flush();
    expect(keysOf(begun)).toEqual(["x", "x", "x"]);
    expect(queue.size).toEqual({ due: 0, later: 0, running: 0 });
    void queue.stop();
    queue.addLowPriority("x");
    await clock.pass(1_000);
    expect(begun).toHaveLength(3);
  });
});

test("what is added twice before it is begun is done once", async () => {
  const gate = Promise.withResolvers<WorkResult>();
  const { queue, begun } = queueWith((key) => (key === "slow" ? gate.promise : DONE), { parallel: 1 });
  for (const key of ["slow", "a", "b", "a", "b", "a"]) queue.add(key);
  expect(queue.size).toEqual({ due: 2, later: 0, running: 1 });
  gate.resolve(DONE);
  await flush();
  expect(begun).toEqual(["0 slow", "0 a", "0 b"]);
});

test("what is added while it is being done is done once more afterwards, never twice at once", async () => {
  const gates: PromiseWithResolvers<WorkResult>[] = [];
  const { queue, begun } = queueWith(() => {
    const gate = Promise.withResolvers<WorkResult>();
    gates.push(gate);
    return gate.promise;
  });
  for (let i = 0; i < 3; i++) queue.add("a");
  await flush();
  expect(begun).toHaveLength(1);
  gates[0]?.resolve(DONE);
  await flush();
  expect(begun).toHaveLength(2);
  gates[1]?.resolve(DONE);
  await flush();
  expect(begun).toHaveLength(2);
});

test("retries come after 0.2, 0.4, 0.8 s and so on up to five minutes, and begin anew after a success", async () => {
  let fails = 13;
  const { queue, clock, begun } = queueWith(() => (fails-- > 0 ? RETRY : DONE));
  queue.add("a");
  await clock.pass(3_600_000);
  const times = begun.map((entry) => Number(entry.split(" ")[0]));
  const gaps = times.slice(1).map((time, i) => time - (times[i] ?? 0));
  expect(gaps).toEqual([
    200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 51_200, 102_400, 204_800, 300_000, 300_000,
  ]);
  fails = 1;
  queue.add("a");
  await clock.pass(250);
  expect(begun).toHaveLength(16);
});

test("half of each wait is by chance", async () => {
  const { queue, clock, begun } = queueWith(() => RETRY, { random: () => 0 });
  queue.add("a");
  await clock.pass(100);
  expect(begun).toEqual(["0 a", "100 a"]);
});

test("work that throws counts as failed, and no other key waits for it", async () => {
  const { queue, clock, begun } = queueWith((key) => {
    if (key === "bad") throw new Error("broken");
    return DONE;
  });
  for (const key of ["bad", "good"]) queue.add(key);
  await clock.pass(200);
  expect(begun).toEqual(["0 bad", "0 good", "200 bad"]);
});

test("a retry that waits is brought forward by a change", async () => {
  const { queue, clock, begun } = queueWith(() => RETRY);
  queue.add("a");
  await clock.pass(50);
  queue.add("a");
  await clock.pass(0);
  expect(begun).toEqual(["0 a", "50 a"]);
});

test("later means not before, and the earliest of several times counts", async () => {
  const { queue, clock, begun } = queueWith(() => DONE);
  queue.addAfter("a", 5_000);
  queue.addAfter("a", 1_000);
  queue.addAfter("a", 9_000);
  await clock.pass(999);
  expect(begun).toEqual([]);
  await clock.pass(20_000);
  expect(begun).toEqual(["1000 a"]);
});

test("work may ask to be done again after a while", async () => {
  let left = 2;
  const { queue, clock, begun } = queueWith(() => (left-- > 0 ? { done: true, afterMs: 30_000 } : DONE));
  queue.add("a");
  await clock.pass(600_000);
  expect(begun).toEqual(["0 a", "30000 a", "60000 a"]);
});

test("no more are begun than the rate allows", async () => {
  const { queue, clock, begun } = queueWith(() => DONE, { perSecond: 2, burst: 3 });
  for (let i = 0; i < 7; i++) queue.add(`k${i}`);
  await clock.pass(10_000);
  expect(begun).toEqual(["0 k0", "0 k1", "0 k2", "500 k3", "1000 k4", "1500 k5", "2000 k6"]);
});

test("stopping begins nothing more, and waits for what is under way", async () => {
  const gate = Promise.withResolvers<WorkResult>();
  const { queue, clock, begun } = queueWith(() => gate.promise, { parallel: 1 });
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
  expect(begun).toEqual(["0 a"]);
});

test("all who stop it wait for what is under way, and no longer", async () => {
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
  ["just what a timer can wait for", 2 ** 31 - 1],
  ["a millisecond more", 2 ** 31],
  ["a year", 365 * 86_400_000],
])("what waits for long waits in full, and can be taken back: %s", async (_, ms) => {
  vi.useFakeTimers();
  try {
    const begun: string[] = [];
    const queue = new Workqueue<string>({
      identity: (item) => item,
      work: async (key) => {
        begun.push(key);
        return DONE;
      },
    });
    queue.addAfter("a", ms);
    await vi.advanceTimersByTimeAsync(ms - 1);
    expect(begun).toEqual([]);
    await vi.advanceTimersByTimeAsync(1);
    expect(begun).toEqual(["a"]);
    queue.addAfter("b", ms);
    await vi.advanceTimersByTimeAsync(ms - 1);
    await queue.stop();
    expect(vi.getTimerCount()).toBe(0);
    expect(begun).toEqual(["a"]);
  } finally {
    vi.useRealTimers();
  }
});

test("whatever is added when, and however it ends: never the same key twice at once, and every change is seen", async () => {
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
        /** When each key was begun last, and added last. */
        const begun = new Map<string, number>();
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
            begun.set(key, ++order);
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
        for (const [key, when] of added) expect(begun.get(key)).toBeGreaterThan(when);
        expect(queue.size).toEqual({ due: 0, later: 0, running: 0 });
      },
    ),
    { numRuns: 100 },
  );
});
