import { expect, test } from "vitest";
import { mapConcurrently } from "../../src/cli/command/write-plan.ts";

test.each([1, 2, 5, 99])("runs at most %i at a time, with results in order", async (parallel) => {
  const items = Array.from({ length: 12 }, (_, i) => i);
  let running = 0;
  let most = 0;
  const seen: number[] = [];
  const results = await mapConcurrently(
    items,
    async (item) => {
      most = Math.max(most, ++running);
      // Later items finish sooner.
      for (let i = item; i < 12; i++) await Promise.resolve();
      running--;
      return item * 2;
    },
    { parallel, pauseMs: 0, progress: (done) => seen.push(done) },
  );
  expect(results).toEqual(items.map((item) => item * 2));
  expect(most).toBe(Math.min(parallel, 12));
  expect(seen).toEqual(items.map((item) => item + 1));
});
