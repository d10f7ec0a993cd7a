import fc from "fast-check";
import { expect, test } from "vitest";
import { PendingCounts } from "./pending-counts.ts";

function given(steps: PendingCounts): Map<string, number> {
  const found = new Map<string, number>();
  steps.give((labels, by) => found.set(`${labels["a"]} ${labels["b"]}`, by));
  return found;
}

test("each combination is given once, with how often it came", () => {
  const text = fc.constantFrom("x", "y", "", "__proto__");
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text)), (all) => {
      const steps = new PendingCounts(["a", "b"]);
      const expected = new Map<string, number>();
      for (const [a, b] of all) {
        steps.take({ a, b });
        expected.set(`${a} ${b}`, (expected.get(`${a} ${b}`) ?? 0) + 1);
      }
      expect(given(steps)).toEqual(expected);
    }),
  );
});

test("what was given is not given again", () => {
  const steps = new PendingCounts(["a", "b"]);
  steps.take({ a: "1", b: "2" });
  expect(given(steps)).toEqual(new Map([["1 2", 1]]));
  expect(given(steps)).toEqual(new Map());
  steps.take({ a: "1", b: "2" });
  expect(given(steps)).toEqual(new Map([["1 2", 1]]));
});

test("a counter without labels counts too", () => {
  const steps = new PendingCounts([]);
  steps.take({});
  steps.take({});
  const found: number[] = [];
  steps.give((_labels, by) => found.push(by));
  steps.give((_labels, by) => found.push(by));
  expect(found).toEqual([2]);
});
