import { expect, test } from "vitest";
import { bend } from "../../bench/growth/fit.ts";
import { MULTIPLES } from "./case.ts";

test.each<[string, number[], number]>([
  ["a line", [1, 2, 4, 8], 1],
  ["a linear function with a constant part", [5, 6, 8, 12], 1],
  ["a constant function", [3, 3, 3, 3], 1],
  ["a square", [1, 4, 16, 64], 1.8],
  ["a limit, then linear growth", [18, 6, 12, 24], 1],
  ["a limit, then quadratic growth", [18, 6, 24, 96], 1.6],
  ["a limit at the third size", [9, 9, 1, 4], 2],
])("computes the bend of %s", (_what, times, expected) => {
  expect(bend(MULTIPLES, times)).toBeCloseTo(expected, 1);
});
