import { expect, test } from "vitest";
import { changeItems, changeMember, fillAbsent, fillZero } from "./fill.ts";

test("fillAbsent fills only absent and null members", () => {
  const object = { a: null, b: "", c: 0, d: false };
  expect(fillAbsent(object, { a: 1, b: 1, c: 1, d: 1, e: 1 })).toEqual({ a: 1, b: "", c: 0, d: false, e: 1 });
  expect(object).toEqual({ a: null, b: "", c: 0, d: false });
});

test("fillZero also fills empty strings and zeros", () => {
  expect(fillZero({ a: null, b: "", c: 0, d: false }, { a: 1, b: 1, c: 1, d: 1 })).toEqual({
    a: 1,
    b: 1,
    c: 1,
    d: false,
  });
});

test("an object that needs nothing is returned itself", () => {
  const object = { a: 1, list: [1, { b: 2 }], member: { c: 3 } };
  expect(fillAbsent(object, { a: 5 })).toBe(object);
  expect(changeMember(object, "member", (member) => member)).toBe(object);
  expect(changeMember(object, "none", () => ({}))).toBe(object);
  expect(changeMember(object, "list", () => ({}))).toBe(object);
  expect(changeItems(object, "list", (item) => item)).toBe(object);
  expect(changeItems(object, "member", () => ({}))).toBe(object);
});

test("only objects in a list are changed, and neighbours are shared", () => {
  const object = { list: [null, 1, { a: 1 }, { b: 1 }], other: {} };
  const changed = changeItems(object, "list", (item) => ("a" in item ? { ...item, x: 1 } : item));
  expect(changed).toEqual({ list: [null, 1, { a: 1, x: 1 }, { b: 1 }], other: {} });
  expect((changed["list"] as unknown[])[3]).toBe(object.list[3]);
  expect(changed["other"]).toBe(object.other);
});

test("__proto__ stays a plain key", () => {
  const object = JSON.parse('{"__proto__":{"polluted":1}}');
  const filled = fillAbsent(object, JSON.parse('{"__proto__":{"x":1},"a":2}'));
  expect(JSON.stringify(filled)).toBe('{"__proto__":{"polluted":1},"a":2}');
  expect(JSON.stringify(fillAbsent({}, object))).toBe('{"__proto__":{"polluted":1}}');
  expect(Object.getPrototypeOf(fillAbsent({}, object))).toBe(Object.prototype);
});
