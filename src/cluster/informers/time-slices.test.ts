import { setImmediate as round } from "node:timers/promises";
import { expect, test } from "vitest";
import { TIME_SLICE_MS } from "../../core/time-slices.ts";
import { slicesFrom, TimeSliceQueue } from "./time-slices.ts";

test("one task runs in each iteration of the event loop, in order", async () => {
  const queue = new TimeSliceQueue();
  const ran: string[] = [];
  const perRound: number[] = [];
  const work = ["a", "b", "c"].map((name) => queue.acquire().then(() => ran.push(name)));
  for (let i = 0; i < 4; i++) {
    const before = ran.length;
    await round();
    perRound.push(ran.length - before);
  }
  await Promise.all(work);
  expect(ran).toEqual(["a", "b", "c"]);
  expect(Math.max(...perRound)).toBe(1);
});

test("a slice lasts for its time", async () => {
  const slices = slicesFrom(new TimeSliceQueue());
  const first = slices.next();
  expect(first).toBeInstanceOf(Promise);
  await first;
  expect(slices.next()).toBeUndefined();
  const end = performance.now() + TIME_SLICE_MS;
  while (performance.now() <= end);
  expect(slices.next()).toBeInstanceOf(Promise);
});
