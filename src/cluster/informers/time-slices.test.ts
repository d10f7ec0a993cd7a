import { setImmediate as round } from "node:timers/promises";
import { expect, test } from "vitest";
import { TIME_SLICE_MS, TimeSliceQueue, TimeSlices } from "./time-slices.ts";

test("one gets its turn in each round of the loop, in the order in which they asked", async () => {
  const turns = new TimeSliceQueue();
  const taken: string[] = [];
  const perRound: number[] = [];
  const work = ["a", "b", "c"].map((name) => turns.take().then(() => taken.push(name)));
  for (let i = 0; i < 4; i++) {
    const before = taken.length;
    await round();
    perRound.push(taken.length - before);
  }
  await Promise.all(work);
  expect(taken).toEqual(["a", "b", "c"]);
  expect(Math.max(...perRound)).toBe(1);
});

test("a slice lasts until its time is over", async () => {
  const slices = new TimeSlices(new TimeSliceQueue());
  const first = slices.next();
  expect(first).toBeInstanceOf(Promise);
  await first;
  expect(slices.next()).toBeUndefined();
  const end = performance.now() + TIME_SLICE_MS;
  while (performance.now() <= end);
  expect(slices.next()).toBeInstanceOf(Promise);
});
