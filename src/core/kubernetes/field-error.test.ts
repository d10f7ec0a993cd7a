import { expect, test } from "vitest";
import { quoted, typeName } from "./field-error.ts";

test("a string is quoted on one line and cut if long", () => {
  expect(quoted("a\nb\u0000")).toBe('"a\\nb\\u0000"');
  expect(quoted("x".repeat(80))).toBe(`"${"x".repeat(80)}"`);
  expect(quoted("x".repeat(81))).toBe(`"${"x".repeat(80)}…"`);
});

test.each<[unknown, string]>([
  [undefined, "absent"],
  [null, "null"],
  [[], "a list"],
  [{}, "an object"],
  [true, "a boolean"],
  ["", "a string"],
  [0, "a number"],
])("%j is %s", (value, name) => {
  expect(typeName(value)).toBe(name);
});
