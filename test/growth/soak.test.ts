// The comparison of a soak's last quarter with the earlier ones.
import { expect, test } from "vitest";
import { targetsThat } from "../../bench/report/result.ts";
import { bucketsOf, quantileBetween } from "../../bench/soak/histogram.ts";
import { type Quarter, resultOf } from "../../bench/soak/quarter.ts";

function quarter(more: Partial<Quarter> = {}): Quarter {
  return {
    reviewed: [10, 10, 10],
    unreviewed: [5, 5, 5],
    sent: { pods: 3 },
    failed: [],
    memory: { a: [100, 110, 105], b: [200] },
    own: 0.001,
    reviews: 3,
    processor: 0.1,
    load: 1,
    ...more,
  };
}

const missed = (second: Partial<Quarter>, last: Partial<Quarter>) =>
  targetsThat([resultOf([quarter(), quarter(second), quarter(), quarter(last)], 60)], false);

test.each<[string, Partial<Quarter>, Partial<Quarter>, number]>([
  ["no change", {}, {}, 0],
  ["memory of one replica grows by less than a tenth", {}, { memory: { a: [114], b: [200] } }, 0],
  ["memory of one replica grows by more than a tenth", {}, { memory: { a: [117], b: [200] } }, 1],
  ["a new replica", {}, { memory: { c: [100] } }, 1],
  ["p99 within a quarter", {}, { reviewed: [12.4] }, 0],
  ["p99 beyond it", {}, { reviewed: [12.6] }, 1],
  ["a machine that is twice as slow for everything", {}, { reviewed: [20], unreviewed: [10] }, 0],
  ["a request that failed", { failed: ["pods: 500"] }, {}, 1],
])("%s", (_, second, last, count) => {
  expect(missed(second, last)).toBe(count);
});

test("prints figures for every quarter", () => {
  const rows = resultOf([quarter(), quarter(), quarter(), quarter()], 60).rows.map(({ what }) => what);
  for (const number of [1, 2, 3, 4]) {
    expect(rows).toContain(`quarter ${number}: memory of a`);
    expect(rows).toContain(`quarter ${number}: a pod's creation, p99`);
    expect(rows).toContain(`quarter ${number}: reviews a second`);
  }
});

test("usher's own p99 covers the reviews of one quarter only", () => {
  const page = (...counts: readonly number[]) =>
    ["0.001", "0.01", "+Inf"]
      .map((le, i) => `usher_request_duration_seconds_bucket{le="${le}",phase="mutate"} ${counts[i]}`)
      .join("\n");
  const before = bucketsOf([page(0, 1_000, 1_000)]);
  expect(quantileBetween(before, bucketsOf([page(50, 1_050, 1_050), page(50, 50, 50)]), 0.99)).toBeCloseTo(
    0.00099,
  );
  expect(quantileBetween(before, bucketsOf([page(98, 1_100, 1_100)]), 0.99)).toBeCloseTo(0.0055);
  expect(quantileBetween(before, bucketsOf([page(0, 1_000, 1_100)]), 0.99)).toBe(0.01);
});
