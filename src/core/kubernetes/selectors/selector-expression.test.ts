import fc from "fast-check";
import { expect, test } from "vitest";
import type { Json } from "../../json.ts";
import type { FieldError } from "../field-error.ts";
import {
  checkExpressionFields,
  checkLabelSyntax,
  checkSetValues,
  readExpression,
} from "./selector-expression.ts";

const places = (problems: readonly FieldError[]) => problems.map(({ path }) => path.join("."));

test("an expression is read with absent parts as empty ones", () => {
  const problems: FieldError[] = [];
  expect(readExpression({ key: "a", operator: "Exists", values: null }, [], problems)).toEqual({
    key: "a",
    operator: "Exists",
    values: [],
  });
  expect(readExpression({}, [], problems)).toEqual({ key: "", operator: "", values: [] });
  expect(problems).toEqual([]);
});

test("rejects values of the wrong type, and names each path", () => {
  const problems: FieldError[] = [];
  expect(readExpression({ key: 1, operator: [], values: ["a", 2, null] }, ["e"], problems)).toBeUndefined();
  expect(readExpression({ key: "a", operator: "In", values: ["a", 1] }, ["g"], problems)).toBeUndefined();
  expect(readExpression("a in (b)", ["f"], problems)).toBeUndefined();
  expect(places(problems)).toEqual(["e.key", "e.operator", "e.values.1", "e.values.2", "g.values.1", "f"]);
});

test("an unknown field is reported but has no effect", () => {
  const problems: FieldError[] = [];
  const written: Json = { key: "a", operator: "Exists", weight: 1 };
  checkExpressionFields(written, ["e"], problems);
  expect(places(problems)).toEqual(["e.weight"]);
  expect(readExpression(written, ["e"], problems)).toBeDefined();
  expect(problems).toHaveLength(1);
});

test("checks the syntax of labels", () => {
  const problems: FieldError[] = [];
  checkLabelSyntax({ key: "a b", operator: "In", values: ["ok", "not ok"] }, ["e"], problems);
  expect(places(problems)).toEqual(["e.key", "e.values.1"]);
});

test.each([
  ["In", 0, 1],
  ["In", 1, 0],
  ["NotIn", 0, 1],
  ["NotIn", 2, 0],
  ["Exists", 0, 0],
  ["Exists", 1, 1],
  ["DoesNotExist", 0, 0],
  ["DoesNotExist", 1, 1],
  ["Gt", 5, 0],
])("%s with %i values has %i problems", (operator, count, expected) => {
  const problems: FieldError[] = [];
  checkSetValues({ key: "a", operator, values: Array.from({ length: count }, () => "x") }, [], problems);
  expect(problems).toHaveLength(expected);
});

test("any JSON is read or named", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      const problems: FieldError[] = [];
      expect(readExpression(value as Json, [], problems) === undefined).toBe(problems.length > 0);
    }),
  );
});
