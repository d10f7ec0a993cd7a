import fc from "fast-check";
import { expect, test } from "vitest";
import { DurationHistogram } from "./duration-histogram.ts";

const BOUNDS = [0.1, 0.5, 1];

function figures(durations: DurationHistogram): Map<string, number> {
  const lines = durations.text().split("\n");
  return new Map(
    lines
      .filter((line) => line !== "" && !line.startsWith("#"))
      .map((line) => [line.slice(0, line.lastIndexOf(" ")), Number(line.slice(line.lastIndexOf(" ") + 1))]),
  );
}

test("a bucket counts all calls up to and including its bound", () => {
  const durations = new DurationHistogram("took_seconds", "How long it took.", "phase", BOUNDS);
  for (const seconds of [0.1, 0.10001, 7]) durations.observe("mutate", seconds);
  durations.observe("validate", 0);
  expect(durations.text()).toBe(`# HELP took_seconds How long it took.
# TYPE took_seconds histogram
took_seconds_bucket{le="0.1",phase="mutate"} 1
took_seconds_bucket{le="0.5",phase="mutate"} 2
took_seconds_bucket{le="1",phase="mutate"} 2
took_seconds_bucket{le="+Inf",phase="mutate"} 3
took_seconds_sum{phase="mutate"} 7.20001
took_seconds_count{phase="mutate"} 3
took_seconds_bucket{le="0.1",phase="validate"} 1
took_seconds_bucket{le="0.5",phase="validate"} 1
took_seconds_bucket{le="1",phase="validate"} 1
took_seconds_bucket{le="+Inf",phase="validate"} 1
took_seconds_sum{phase="validate"} 0
took_seconds_count{phase="validate"} 1
`);
});

test("its counts add up to the observations", () => {
  fc.assert(
    fc.property(fc.array(fc.double({ min: 0, max: 2, noNaN: true })), (all) => {
      const durations = new DurationHistogram("t", "T.", "of", BOUNDS);
      for (const seconds of all) durations.observe("x", seconds);
      const found = figures(durations);
      if (all.length === 0) {
        expect(found.size).toBe(0);
        return;
      }
      for (const bound of BOUNDS) {
        expect(found.get(`t_bucket{le="${bound}",of="x"}`)).toBe(all.filter((one) => one <= bound).length);
      }
      expect(found.get('t_count{of="x"}')).toBe(all.length);
      expect(found.get('t_sum{of="x"}')).toBeCloseTo(all.reduce((sum, one) => sum + one, 0));
    }),
  );
});

test("a label's value can't break its line", () => {
  const durations = new DurationHistogram("t", "T.", "of", []);
  durations.observe('a"b\\c\nd', 1);
  expect(durations.text()).toContain('t_count{of="a\\"b\\\\c\\nd"} 1\n');
});
