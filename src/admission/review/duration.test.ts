import { expect, test } from "vitest";
import { parseDuration } from "./duration.ts";

test.each([
  ["10s", 10_000],
  ["500ms", 500],
  ["1m30s", 90_000],
  ["1h0m0s", 3_600_000],
  ["1.5s", 1_500],
  [".5s", 500],
  ["250us", 0.25],
  ["250µs", 0.25],
  ["250μs", 0.25],
  ["-2s", -2_000],
  ["0", 0],
  ["0s", 0],
])("parses %s as %d ms", (text, ms) => {
  expect(parseDuration(text)).toBeCloseTo(ms);
});

test.each(["", "-", "10", "s", "10s ", "10 s", "1e3s", "10sx", "ten seconds", "1d", "NaNs"])(
  "rejects %j",
  (text) => {
    expect(parseDuration(text)).toBeUndefined();
  },
);
