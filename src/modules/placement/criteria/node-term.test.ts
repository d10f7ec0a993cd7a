import fc from "fast-check";
import { expect, test } from "vitest";
import { anyCriteria, anyTerm } from "../../../../test/builders/criteria.ts";
import { term } from "../../../../test/builders/merged.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import {
  compileNodeSelector,
  matchesNode,
  type NodeTerm,
} from "../../../core/kubernetes/selectors/node-selector.ts";
import { areCompatible, combination, hasAll, isMatchable, parseTerm } from "./node-term.ts";

const satisfiable = (one: Json, selector: readonly (readonly [string, string])[] | undefined) =>
  isMatchable(parseTerm(one), selector === undefined ? undefined : new Map(selector));

function compiled(one: Json): NodeTerm {
  return compileNodeSelector({ nodeSelectorTerms: [one] }, []).terms[0] ?? { kind: "broken" };
}

const LARGEST = "9223372036854775807";

test.each<[string, JsonObject, boolean, selector?: [string, string][]]>([
  ["nothing is required", {}, false],
  ["one value", term("zone=a"), true],
  ["two values at once", term("zone=a", "zone=b"), false],
  ["one of both", term("zone=a|b", "zone=b|c"), true],
  ["the only value excluded", term("zone=a", "zone!=a"), false],
  ["another value remains", term("zone=a|b", "zone!=a"), true],
  ["excluded only: absent will do", term("zone!=a", "!zone"), true],
  ["there and not there", term("zone", "!zone"), false],
  ["a value of an absent label", term("zone=a", "!zone"), false],
  ["there, with no value that is named", term("zone", "zone!=a|b"), true],
  ["a number between", term("cores>4", "cores<6"), true],
  ["no number between", term("cores>4", "cores<5"), false],
  ["no number below the least label", term("cores<0"), false],
  ["zero is the least", term("cores<1"), true],
  ["no number above the largest", term(`cores>${LARGEST}`), false],
  ["the only number excluded by one spelling", term("cores>4", "cores<6", "cores!=5"), true],
  ["a number and a string", term("cores>4", "cores=many"), false],
  ["a number in range", term("cores>4", "cores=2|8"), true],
  ["a number, but absent", term("cores>4", "!cores"), false],
  ["one node", term("@n1"), true],
  ["two nodes at once", term("@n1", "@n2"), false],
  ["with the nodeSelector", term("zone=a"), true, [["zone", "a"]]],
  ["against the nodeSelector", term("zone=a"), false, [["zone", "b"]]],
  ["a key that the nodeSelector needs", term("!zone"), false, [["zone", "b"]]],
  ["a number against the nodeSelector", term("cores>4"), false, [["cores", "4"]]],
  ["a number with the nodeSelector", term("cores>4"), true, [["cores", "05"]]],
])("%s: %j %s", (_what, one, expected, selector = []) => {
  expect(satisfiable(one, selector)).toBe(expected);
});

test("every spelling of the only number excluded", () => {
  const spellings = Array.from({ length: 63 }, (_, zeros) => "5".padStart(zeros + 1, "0"));
  const excluding = (values: string[]) =>
    satisfiable(term("cores>4", "cores<6", `cores!=${values.join("|")}`), []);
  expect(excluding(spellings)).toBe(false);
  for (const left of [0, 31, 62]) expect(excluding(spellings.filter((_, i) => i !== left))).toBe(true);
});

test.each<[string, Json]>([
  ["a text", "zone=a"],
  ["null", null],
  ["an operator that does not exist", { matchExpressions: [{ key: "zone", operator: "Is", values: ["a"] }] }],
  ["Gt with a string", { matchExpressions: [{ key: "zone", operator: "Gt", values: ["a"] }] }],
  ["another field of a node", { matchFields: [{ key: "spec.x", operator: "In", values: ["a"] }] }],
])("an unreadable requirement matches nothing: %s", (_what, one) => {
  expect(satisfiable(one, [])).toBe(false);
});

test("a nodeSelector that can match nothing", () => {
  expect(satisfiable(term("zone=a"), undefined)).toBe(false);
});

test("agrees with trying all labels", () => {
  // Numbers from 0 to 3 with a spelling that no requirement names, and a string that none names: there is no other kind
  // of value.
  const values = ["0", "1", "2", "3", "00", "01", "02", "03", "04", "5", "x", "y", "fresh", undefined];
  const named = fc.constantFrom("0", "1", "2", "3", "x", "y");
  const some = fc.uniqueArray(named, { minLength: 1, maxLength: 3 }).map((list) => list.join("|"));
  const one = fc.oneof(
    fc.tuple(fc.constantFrom("a", "b"), fc.constantFrom("=", "!="), some).map((parts) => parts.join("")),
    fc
      .tuple(fc.constantFrom("a", "b"), fc.constantFrom("<", ">"), fc.constantFrom("0", "1", "2", "3"))
      .map((parts) => parts.join("")),
    fc.constantFrom("a", "b", "!a", "!b", "@n1", "@n2"),
  );
  const nodes = values.flatMap((a) =>
    values.flatMap((b) =>
      ["n1", "n2", "n3"].map((name) => ({
        name,
        labels: { ...(a === undefined ? {} : { a }), ...(b === undefined ? {} : { b }) } as JsonObject,
      })),
    ),
  );
  let both = 0;
  fc.assert(
    fc.property(
      fc.array(one, { minLength: 1, maxLength: 5 }),
      fc.dictionary(fc.constantFrom("a", "b"), named, { maxKeys: 1 }),
      (texts, selector) => {
        const one = term(...texts);
        const made = compiled(one);
        const pairs = Object.entries(selector);
        const found = nodes.some(
          (node) => matchesNode([made], node) && pairs.every(([key, value]) => node.labels[key] === value),
        );
        both |= found ? 1 : 2;
        expect(satisfiable(one, pairs)).toBe(found);
      },
    ),
    { numRuns: 1_000 },
  );
  expect(both).toBe(3);
});

/** An empty term matches no node, and is never put together with another. */
const anyUsable = anyTerm.filter((one) => Object.keys(one).length > 0);
const anySelector = anyCriteria.map(({ nodeSelector }) => nodeSelector);

test("two terms are compatible if a node could match their combination", () => {
  const seen = new Set<boolean>();
  fc.assert(
    fc.property(anyUsable, anyUsable, anySelector, (a, b, pairs) => {
      const selector = new Map(pairs);
      const [first, second] = [parseTerm(a), parseTerm(b)];
      const possible =
        isMatchable(first, selector) && isMatchable(second, selector) && areCompatible(first, second);
      const both = combination(first, second);
      expect(possible).toBe(satisfiable(both.term, pairs ?? []));
      seen.add(possible);
      if (!possible) return;
      // The combination equals its parsed form.
      const read = parseTerm(both.term);
      expect(both.requirements).toEqual(read.requirements);
      expect([both.size, both.values, both.texts]).toEqual([read.size, read.values, read.texts]);
      expect(both.meaning).toEqual(read.meaning);
      expect(hasAll(both, first) && hasAll(both, second)).toBe(true);
    }),
    { numRuns: 500 },
  );
  expect(seen.size).toBe(2);
});
