import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { again, anyKey, jsonObjectWith, jsonWith } from "../../test/builders/json.ts";
import {
  at,
  canonical,
  copyOf,
  equal,
  holdsAtMost,
  isObject,
  type Json,
  listAt,
  memoryOf,
  own,
  setOwn,
  stringAt,
} from "./json.ts";

const anyJson = jsonWith(anyKey);

describe("reading", () => {
  test.each<[unknown, boolean]>([
    [{}, true],
    [Object.create(null), true],
    [[], false],
    [null, false],
    ["x", false],
    [undefined, false],
  ])("isObject(%j) is %s", (value, expected) => {
    expect(isObject(value)).toBe(expected);
  });

  test.each(["__proto__", "constructor", "toString", "hasOwnProperty"])("%s is not inherited", (key) => {
    expect(own({}, key)).toBeUndefined();
    expect(at({ a: {} }, "a", key)).toBeUndefined();
    expect(own(JSON.parse(`{"${key}": 1}`), key)).toBe(1);
  });

  test.each<[Json | undefined, (string | number)[], Json | undefined]>([
    [{ a: { b: 1 } }, ["a", "b"], 1],
    [{ a: [{ b: 1 }] }, ["a", 0, "b"], 1],
    [{ a: [1] }, ["a", "0"], undefined],
    [{ a: [1] }, ["a", "length"], undefined],
    [{ a: [1] }, ["a", -1], undefined],
    [{ a: [1] }, ["a", 0.5], undefined],
    [{ a: "text" }, ["a", 0], undefined],
    [{ a: null }, ["a", "b"], undefined],
    [{ a: null }, ["a"], null],
    [{ a: false }, ["a"], false],
    [undefined, ["a"], undefined],
    [{ a: 1 }, [], { a: 1 }],
  ])("%j at %j", (value, keys, expected) => {
    expect(at(value, ...keys)).toEqual(expected);
  });

  test("stringAt and listAt return only values of their type", () => {
    const value = { text: "x", list: [1], number: 1, nothing: null };
    expect(stringAt(value, "text")).toBe("x");
    for (const key of ["list", "number", "nothing", "missing"]) expect(stringAt(value, key)).toBeUndefined();
    expect(listAt(value, "list")).toEqual([1]);
    for (const key of ["text", "number", "nothing", "missing"]) expect(listAt(value, key)).toEqual([]);
  });
});

test("setOwn creates an own member for any key and leaves the prototype unchanged", () => {
  fc.assert(
    fc.property(anyKey, (key) => {
      const target: Record<string, Json> = {};
      setOwn(target, key, { polluted: true });
      expect(Object.keys(target)).toEqual([key]);
      expect(Object.getPrototypeOf(target)).toBe(Object.prototype);
      expect(JSON.stringify(target)).toBe(`{${JSON.stringify(key)}:{"polluted":true}}`);
    }),
  );
});

describe("equal", () => {
  test.each<[Json | undefined, Json | undefined, boolean]>([
    [{ a: 1, b: 2 }, { b: 2, a: 1 }, true],
    [{ a: undefined }, {}, true],
    [{}, { a: undefined }, true],
    [{ a: undefined, b: 1 }, { b: 1, c: undefined }, true],
    [{ a: undefined }, { a: null }, false],
    [{ a: 1 }, { a: 1, b: 1 }, false],
    [{ a: 1, b: 1 }, { a: 1 }, false],
    [[1, 2], [2, 1], false],
    [[1], [1, 2], false],
    [[], {}, false],
    [{}, [], false],
    [null, {}, false],
    [null, undefined, false],
    [0, false, false],
    ["1", 1, false],
    [{ toString: 1 }, {}, false],
    [{}, { toString: 1 }, false],
    [JSON.parse('{"__proto__": {"a": 1}}'), {}, false],
    [JSON.parse('{"__proto__": {"a": 1}}'), JSON.parse('{"__proto__": {"a": 1}}'), true],
    [JSON.parse('{"__proto__": {"a": 1}}'), JSON.parse('{"__proto__": {"a": 2}}'), false],
  ])("%j and %j: %s", (a, b, expected) => {
    expect(equal(a, b)).toBe(expected);
    expect(equal(b, a)).toBe(expected);
  });

  test("is equality of the canonical text", () => {
    fc.assert(
      fc.property(anyJson, anyJson, (a, b) => {
        expect(equal(a, again(a))).toBe(true);
        expect(equal(a, b)).toBe(canonical(a) === canonical(b));
      }),
    );
  });

  test("as deep as a request may be, and deeper", () => {
    const deep = (levels: number, core: string): Json =>
      JSON.parse(`${'{"a":['.repeat(levels)}${core}${"]}".repeat(levels)}`);
    expect(equal(deep(20_000, "1"), deep(20_000, "1"))).toBe(true);
    expect(equal(deep(20_000, "1"), deep(20_000, "2"))).toBe(false);
  });
});

test("canonical text parses to an equal value, for any order of keys", () => {
  fc.assert(
    fc.property(jsonObjectWith(anyKey), (value) => {
      const turned: Record<string, Json> = {};
      for (const key of Object.keys(value).reverse()) setOwn(turned, key, value[key] ?? null);
      expect(canonical(turned)).toBe(canonical(value));
      expect(equal(JSON.parse(canonical(value)), value)).toBe(true);
    }),
  );
  expect(canonical(undefined)).toBe("null");
  expect(canonical({ b: undefined, a: 1 })).toBe('{"a":1}');
});

test("a copy is equal and shares nothing", () => {
  const parts = (value: Json): object[] =>
    typeof value === "object" && value !== null
      ? [value, ...Object.values(value).flatMap((inner) => parts(inner ?? null))]
      : [];
  fc.assert(
    fc.property(anyJson, (value) => {
      const copy = copyOf(value);
      expect(JSON.stringify(copy)).toBe(JSON.stringify(value));
      const mine = new Set(parts(value));
      for (const part of parts(copy)) expect(mine.has(part)).toBe(false);
    }),
  );
});

test.each<[Json, number, number, boolean]>([
  ["x", 1, 0, true],
  [{}, 1, 0, false],
  [{}, 1, 1, true],
  [{ a: [1, { b: null }], c: "x" }, 6, 3, true],
  [{ a: [1, { b: null }], c: "x" }, 5, 3, false],
  [{ a: [1, { b: null }], c: "x" }, 6, 2, false],
  [[1, 2], 2, 9, false],
])("%j has at most %i values and %i levels: %s", (value, values, depth, expected) => {
  expect(holdsAtMost(value, values, depth)).toBe(expected);
});

test.each<[string, Json, number]>([
  ["a text", "abc", 27],
  ["a number", 1, 8],
  ["a list", [1, 2], 64],
  ["an object with a key that is new", { a: null }, 56 + 101 + 8],
])("estimates the memory of %s", (_, value, bytes) => {
  expect(memoryOf(value, new Set())).toBe(bytes);
});

test("a known key takes less memory, and any depth is counted", () => {
  const known = new Set<string>();
  expect(memoryOf({ a: null }, known)).toBeGreaterThan(memoryOf({ a: null }, known));
  let deep: Json = [];
  for (let i = 0; i < 100_000; i++) deep = [deep];
  expect(memoryOf(deep, known)).toBe(100_001 * 32 + 100_000 * 8);
});
