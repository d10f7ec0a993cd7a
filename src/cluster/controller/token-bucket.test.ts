import { expect, test } from "vitest";
import { TokenBucket } from "./token-bucket.ts";

test("a bucket refills up to its burst", () => {
  const bucket = new TokenBucket(1, 2, 0);
  expect([bucket.take(0), bucket.take(0), bucket.take(0)]).toEqual([0, 0, 1_000]);
  expect(bucket.full(1_000)).toBe(false);
  expect(bucket.full(2_000)).toBe(true);
  expect([bucket.take(99_000), bucket.take(99_000), bucket.take(99_000)]).toEqual([0, 0, 1_000]);
});
