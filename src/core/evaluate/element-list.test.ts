import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyKey, jsonWith } from "../../../test/builders/json.ts";
import { canonical, type Json } from "../json.ts";
import { listRoom } from "../provenance/origin.ts";
import { containsElement, ElementList } from "./element-list.ts";

const carries = (list: Json, element: Json) => new ElementList(list).carries(canonical(element));

describe("a list carries", () => {
  test.each<[string, list: Json, element: Json, boolean]>([
    ["an element that is the same", [1, { a: 1, b: 2 }], { b: 2, a: 1 }, true],
    ["not one that is another", [{ a: 1 }], { a: 2 }, false],
    ["a text", ["a", "b"], "b", true],
    ["one that has more in its lists", [{ a: [1, 2], b: "x" }], { a: [2], b: "x" }, true],
    ["one that has further lists", [{ a: [1], z: [] }], { a: [1] }, true],
    ["not one with a further member that is no list", [{ a: [1], z: 1 }], { a: [1] }, false],
    ["not one with less in a list", [{ a: [1] }], { a: [1, 2] }, false],
    ["not one with another member", [{ a: [1], b: "y" }], { a: [1], b: "x" }, false],
    ["not one without a member", [{ a: [1, 2] }], { a: [1], b: "x" }, false],
    ["no more inside of objects inside", [{ a: { b: [1, 2] } }], { a: { b: [1] } }, false],
    ["not parts spread over two elements", [{ a: [1] }, { a: [2] }], { a: [1, 2] }, false],
    ["a list is no object", [{ a: [1] }], [1], false],
    ["nothing where it is no list", { a: 1 }, { a: 1 }, false],
    ["nothing where it is null", null, null, false],
    ["__proto__ as a member", [JSON.parse('{"__proto__": [1, 2]}')], JSON.parse('{"__proto__": [1]}'), true],
    ["not constructor, which every object seems to have", [{ a: [] }], { constructor: [] }, false],
  ])("%s", (_what, list, element, expected) => {
    expect(carries(list, element)).toBe(expected);
    if (Array.isArray(list) && list.length === 1)
      expect(containsElement(list[0] as Json, element)).toBe(expected);
  });

  test("what is widened only where the list is short", () => {
    const list = (length: number) => Array.from({ length }, (_, i) => ({ a: [i, "more"] }));
    expect(carries(list(64), { a: [63] })).toBe(true);
    expect(carries(list(65), { a: [63] })).toBe(false);
    expect(carries(list(65), { a: [63, "more"] })).toBe(true);
  });

  test("each of its own elements, and each of those with less in its lists", () => {
    fc.assert(
      fc.property(fc.array(jsonWith(anyKey), { maxLength: 5 }), (list) => {
        const made = new ElementList(list);
        for (const element of list) {
          expect(made.carries(canonical(element))).toBe(true);
          expect(containsElement(element, element)).toBe(true);
        }
      }),
    );
  });
});

test("many questions about a few large elements are no burden", () => {
  const large = Array.from({ length: 20 }, (_, k) => ({
    a: Array.from({ length: 700 }, (_, i) => i * 20 + k),
  }));
  const list = new ElementList(large);
  let found = 0;
  for (let i = 0; i < 10_000; i++) if (list.carries(`{"a":[${i}]}`)) found++;
  expect(found).toBe(10_000);
});

test("a list of more values than are read carries nothing, nor do those read after it", () => {
  const large = [{ a: Array.from({ length: 15_000 }, (_, i) => i) }];
  const room = listRoom();
  expect(new ElementList(large, room).carries('{"a":[7]}')).toBe(true);
  expect(new ElementList(large, room).carries('{"a":[7]}')).toBe(false);
  expect(new ElementList([1, 2], room).carries("1")).toBe(true);
});
