import fc from "fast-check";
import { expect, test } from "vitest";
import { isLargestInt64, isSmallestInt64, parseInt64 } from "./integer.ts";

const LARGEST = 9223372036854775807n;

test.each<[string, bigint | undefined]>([
  ["0", 0n],
  ["-0", 0n],
  ["+0", 0n],
  ["007", 7n],
  ["+7", 7n],
  ["-7", -7n],
  [`${"0".repeat(100)}5`, 5n],
  ["9223372036854775807", LARGEST],
  ["9223372036854775808", undefined],
  ["-9223372036854775808", -LARGEST - 1n],
  ["-9223372036854775809", undefined],
  ["9".repeat(1_000_000), undefined],
  ["", undefined],
  ["+", undefined],
  ["-", undefined],
  ["--1", undefined],
  [" 1", undefined],
  ["1 ", undefined],
  ["1\n", undefined],
  ["1_000", undefined],
  ["0x10", undefined],
  ["1e3", undefined],
  ["1.0", undefined],
  ["٣", undefined],
])("%#: parses like Go", (text, value) => {
  expect(parseInt64(text)).toBe(value);
});

test("a number in any spelling is parsed", () => {
  const zeros = fc.nat(5).map((count) => "0".repeat(count));
  fc.assert(
    fc.property(
      fc.bigInt({ min: -(2n ** 66n), max: 2n ** 66n }),
      zeros,
      fc.boolean(),
      (value, padding, plus) => {
        const sign = value < 0n ? "-" : plus ? "+" : "";
        const inRange = BigInt.asIntN(64, value) === value;
        const size = value < 0n ? -value : value;
        expect(parseInt64(`${sign}${padding}${size}`)).toBe(inRange ? value : undefined);
      },
    ),
  );
});

test("the ends of the range", () => {
  expect([LARGEST, LARGEST - 1n].map(isLargestInt64)).toEqual([true, false]);
  expect([-LARGEST - 1n, -LARGEST].map(isSmallestInt64)).toEqual([true, false]);
});
