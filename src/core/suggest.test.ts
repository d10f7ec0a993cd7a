import fc from "fast-check";
import { expect, test } from "vitest";
import { didYouMean, nearest } from "./suggest.ts";

const OPERATORS = ["In", "NotIn", "Exists", "DoesNotExist"];

test.each<[string, readonly string[], string | undefined]>([
  ["Exist", OPERATORS, "Exists"],
  ["exists", OPERATORS, "Exists"],
  ["Exitss", OPERATORS, "Exists"],
  ["NotInn", OPERATORS, "NotIn"],
  ["DoesntExist", OPERATORS, "DoesNotExist"],
  ["im", OPERATORS, "In"],
  ["xy", OPERATORS, undefined],
  ["Between", OPERATORS, undefined],
  ["nodeSelecter", ["nodeSelector", "podSelector"], "nodeSelector"],
  ["anything", [], undefined],
  ["", ["serve"], undefined],
  ["__proto__", ["prototype"], undefined],
])("finds the nearest of %s", (word, known, expected) => {
  expect(nearest(word, known)).toBe(expected);
});

test("two letters swapped are one slip", () => {
  expect(nearest("sevre", ["serve", "seven"])).toBe("serve");
});

test("of two as near the first listed is taken", () => {
  expect(nearest("cat", ["bat", "hat"])).toBe("bat");
});

test("returns a hint only if there is a suggestion", () => {
  expect(didYouMean("Exist", OPERATORS)).toBe('did you mean "Exists"?');
  expect(didYouMean("Between", OPERATORS)).toBeUndefined();
});

test("handles a word of any length, and suggests nothing for a very long one", () => {
  expect(nearest("x".repeat(1_000_000), ["x".repeat(60)])).toBeUndefined();
});

test("a suggestion is one of the known words, and a known word is its own nearest", () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 64 }), fc.array(fc.string({ maxLength: 20 })), (word, known) => {
      const found = nearest(word, known);
      if (found !== undefined) expect(known).toContain(found);
      expect(nearest(word, [...known, word])?.toLowerCase()).toBe(word.toLowerCase());
    }),
  );
});
