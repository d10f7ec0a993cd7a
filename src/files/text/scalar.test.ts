import { describe, expect, test } from "vitest";
import { keyText, plainScalar, taggedScalar } from "./scalar.ts";

describe("plain scalars, compared with kubectl", () => {
  const cases: [string, unknown][] = [
    ["y", true],
    ["Yes", true],
    ["ON", true],
    ["True", true],
    ["n", false],
    ["no", false],
    ["Off", false],
    ["FALSE", false],
    ["yEs", "yEs"],
    ["tRUE", "tRUE"],
    ["", null],
    ["~", null],
    ["Null", null],
    ["nULL", "nULL"],
    ["0", 0],
    ["-0", 0],
    ["12", 12],
    ["+12", 12],
    ["1_000", 1000],
    ["0777", 511],
    ["-0777", -511],
    ["0o17", 15],
    ["0x1F", 31],
    ["0b101", 5],
    ["089", 89],
    ["0x", "0x"],
    ["-", "-"],
    ["1.5", 1.5],
    [".5", 0.5],
    ["-.5", -0.5],
    ["1.", 1],
    ["1e3", 1000],
    ["1e400", "1e400"],
    ["._5", "._5"],
    ["1:30", "1:30"],
    ["190:20:30.15", "190:20:30.15"],
    ["2024-01-02", "2024-01-02"],
    ["2024-01-02T03:04:05Z", "2024-01-02T03:04:05Z"],
    ["1.2.3", "1.2.3"],
    ["v1", "v1"],
    ["9007199254740993", JSON.parse("9007199254740993")],
    ["99999999999999999999", 1e20],
    [".inf", Number.POSITIVE_INFINITY],
    ["-.INF", Number.NEGATIVE_INFINITY],
    [".nan", Number.NaN],
  ];
  test.each(cases)("%j is read as %j", (text, value) => {
    expect(plainScalar(text).value).toEqual(value);
  });

  test("zero is never negative, whose JSON would differ", () => {
    expect(Object.is(plainScalar("-0").value, 0)).toBe(true);
  });
});

test.each([
  ["true", "true"],
  ["on", "true"],
  ["n", "false"],
  ["1", "1"],
  ["0x10", "16"],
  ["9223372036854775807", "9223372036854775807"],
  ["1.5", "1.5"],
  ["0.1", "0.1"],
  ["1234567.0", "1.234567e+06"],
  ["0.00001", "1e-05"],
  [".inf", ".inf"],
  ["~", undefined],
  ["name", "name"],
])("the key %j becomes %j", (text, key) => {
  expect(keyText(plainScalar(text))).toBe(key);
});

test("a tag determines the type of a scalar, quoted or not", () => {
  const tag = (name: string) => `tag:yaml.org,2002:${name}`;
  expect(taggedScalar(tag("str"), "12")).toBe("12");
  expect(taggedScalar(tag("int"), "12")).toBe(12);
  expect(taggedScalar(tag("float"), "12")).toBe(12);
  expect(taggedScalar(tag("bool"), "yes")).toBe(true);
  expect(taggedScalar(tag("int"), "many")).toBeUndefined();
  expect(taggedScalar(tag("binary"), "aGVs\n bG8=")).toBe("hello");
  expect(taggedScalar(tag("binary"), "***")).toBeUndefined();
  expect(taggedScalar("!mine", "12")).toBe("12");
});
