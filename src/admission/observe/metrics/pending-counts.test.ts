import fc from "fast-check";
import { expect, test } from "vitest";
import { PendingCounts } from "./pending-counts.ts";

function given(steps: PendingCounts): Map<string, number> {
  const found = new Map<string, number>();
  steps.flush((labels, by) => found.set(`${labels["a"]} ${labels["b"]}`, by));
  return found;
}

test("yields each combination once, with its count", () => {
  const text = fc.constantFrom("x", "y", "", "__proto__");
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text)), (all) => {
      const steps = new PendingCounts(["a", "b"]);
      const expected = new Map<string, number>();
      for (const [a, b] of all) {
        steps.add({ a, b });
        expected.set(`${a} ${b}`, (expected.get(`${a} ${b}`) ?? 0) + 1);
      }
      expect(given(steps)).toEqual(expected);
    }),
  );
});

test("does not yield a count again", () => {
  const steps = new PendingCounts(["a", "b"]);
  steps.add({ a: "1", b: "2" });
  expect(given(steps)).toEqual(new Map([["1 2", 1]]));
  expect(given(steps)).toEqual(new Map());
  steps.add({ a: "1", b: "2" });
  expect(given(steps)).toEqual(new Map([["1 2", 1]]));
});

test("counts a counter without labels", () => {
  const steps = new PendingCounts([]);
  steps.add({});
  steps.add({});
  const found: number[] = [];
  steps.flush((_labels, by) => found.push(by));
  steps.flush((_labels, by) => found.push(by));
  expect(found).toEqual([2]);
});
