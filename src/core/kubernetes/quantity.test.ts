import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MILLI, ONE, parseQuantity, wholeUnits } from "./quantity.ts";

describe("parseQuantity", () => {
  test.each([
    ["0", 0n],
    ["1", 1_000_000_000n],
    [3, 3_000_000_000n],
    [0.5, 500_000_000n],
    ["500m", 500_000_000n],
    ["1.5", 1_500_000_000n],
    [".5", 500_000_000n],
    ["5.", 5_000_000_000n],
    ["+1", 1_000_000_000n],
    ["-1", -1_000_000_000n],
    ["100n", 100n],
    ["7u", 7_000n],
    ["1k", 10n ** 12n],
    ["1Ki", 1024n * 10n ** 9n],
    ["1.5Gi", 3n * 2n ** 29n * 10n ** 9n],
    ["1e3", 10n ** 12n],
    ["1E3", 10n ** 12n],
    ["1E", 10n ** 27n],
    ["12e-4", 1_200_000n],
    [1e21, (2n ** 63n - 1n) * 10n ** 9n],
  ])("parses %j exactly", (text, nanos) => expect(parseQuantity(text)).toBe(nanos));

  test("rounds away from zero below a billionth, as Kubernetes does", () => {
    expect(parseQuantity("0.1n")).toBe(1n);
    expect(parseQuantity("1e-12")).toBe(1n);
    expect(parseQuantity("-0.1n")).toBe(-1n);
  });

  test("caps values beyond 64 bits, as Kubernetes does", () => {
    for (const text of ["9223372036854775808", "1000Ei", "1e999999999"])
      expect(parseQuantity(text)).toBe((2n ** 63n - 1n) * 10n ** 9n);
  });

  test.each([
    undefined,
    null,
    true,
    {},
    [],
    "",
    ".",
    "m",
    "1 ",
    " 1",
    "1mi",
    "1ki",
    "1e",
    "1ee3",
    "0x1",
    "1_0",
    "NaN",
    Number.NaN,
    "9".repeat(200),
  ])("rejects %j", (value) => expect(parseQuantity(value)).toBeUndefined());

  test("never throws for any string", () => {
    fc.assert(fc.property(fc.string(), (text) => void parseQuantity(text)));
  });
});

test.each([
  ["100m", MILLI, 100],
  ["0.0001", MILLI, 1],
  ["1.1", ONE, 2],
  ["-1.1", ONE, -2],
  ["8Pi", ONE, undefined],
])("wholeUnits counts %s rounded up, and nothing beyond exact numbers", (text, unit, count) => {
  expect(wholeUnits(parseQuantity(text) ?? 0n, unit)).toBe(count);
});
