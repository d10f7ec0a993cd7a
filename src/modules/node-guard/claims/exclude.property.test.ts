import fc from "fast-check";
import { expect, test } from "vitest";
import { required } from "../../../../test/builders/guard.ts";
import { matchesPodPlacement } from "../../../../test/builders/pod.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import { compileSelector, matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import { compilePodPlacement } from "../../../core/kubernetes/selectors/node-selector.ts";
import { excludeSelector } from "./exclude.ts";
import { excludesSelector } from "./pod-nodes.ts";

const KEYS = ["x", "y"];
const VALUES = ["1", "2"];
const setRequirement = fc.oneof(
  fc.record({
    key: fc.constantFrom(...KEYS),
    operator: fc.constantFrom("In", "NotIn"),
    values: fc.uniqueArray(fc.constantFrom(...VALUES), { minLength: 1 }),
  }),
  fc.record({ key: fc.constantFrom(...KEYS), operator: fc.constantFrom("Exists", "DoesNotExist") }),
) as fc.Arbitrary<JsonObject>;
const bound = fc.record({
  key: fc.constantFrom(...KEYS),
  operator: fc.constantFrom("Gt", "Lt"),
  values: fc.constantFrom(["1"], ["2"]),
}) as unknown as fc.Arbitrary<JsonObject>;
const field = fc.record({
  key: fc.constant("metadata.name"),
  operator: fc.constantFrom("In", "NotIn"),
  values: fc.constantFrom(["a"], ["b"]),
}) as unknown as fc.Arbitrary<JsonObject>;
const term = fc.record(
  {
    matchExpressions: fc.array(fc.oneof(setRequirement, bound), { maxLength: 2 }),
    matchFields: fc.array(field, { maxLength: 1 }),
  },
  { requiredKeys: [] },
) as unknown as fc.Arbitrary<JsonObject>;
const group = fc.record(
  {
    matchLabels: fc.dictionary(fc.constantFrom(...KEYS), fc.constantFrom(...VALUES), { maxKeys: 1 }),
    matchExpressions: fc.array(setRequirement, { maxLength: 2 }),
  },
  { requiredKeys: [] },
) as unknown as fc.Arbitrary<JsonObject>;

/** Every set of labels over the keys and values, for both names. */
const NODES = ["a", "b"].flatMap((name) =>
  ["", ...VALUES].flatMap((x) =>
    ["", ...VALUES].map((y) => ({ name, labels: { ...(x && { x }), ...(y && { y }) } as JsonObject })),
  ),
);

const specOf = (terms: readonly Json[] | undefined): JsonObject =>
  terms === undefined ? {} : required(...terms);

test("a steered pod matches just the nodes that it did, less the protected ones", () => {
  let steered = 0;
  fc.assert(
    fc.property(
      fc.option(fc.array(term, { minLength: 1, maxLength: 3 }), { nil: undefined }),
      fc.array(group, { minLength: 1, maxLength: 3 }),
      fc.dictionary(fc.constantFrom(...KEYS), fc.constantFrom(...VALUES), { maxKeys: 1 }),
      (terms, groups, nodeSelector) => {
        // A group of all nodes has nothing outside of it.
        const selectors = groups
          .map((one) => compileSelector(one, []).selector)
          .filter(({ kind }) => kind === "requirements");
        let made: readonly Json[] | undefined = terms;
        for (const selector of selectors) {
          const next = excludeSelector(made, selector);
          if (next === "too many") return;
          if (next !== "unchanged") made = next;
        }
        if (made !== terms) steered++;
        for (const node of NODES) {
          const former = matchesPodPlacement({ nodeSelector, ...specOf(terms) }, node);
          const isProtected = selectors.some((selector) => matches(selector, node.labels));
          expect(matchesPodPlacement({ nodeSelector, ...specOf(made) }, node)).toBe(former && !isProtected);
        }
        for (const selector of selectors) expect(excludeSelector(made, selector)).toBe("unchanged");
        if (made?.some((one) => Object.keys(one as object).length > 0 && isUsable(one)))
          for (const selector of selectors)
            expect(excludesSelector(compilePodPlacement(specOf(made)), selector)).toBe(true);
      },
    ),
    { numRuns: 1_000 },
  );
  expect(steered).toBeGreaterThan(300);
});

function isUsable(one: Json): boolean {
  const { matchExpressions = [], matchFields = [] } = one as {
    matchExpressions?: Json[];
    matchFields?: Json[];
  };
  return matchExpressions.length + matchFields.length > 0;
}

test("empty terms match no node, and stay unchanged", () => {
  const { selector } = compileSelector({ matchLabels: { x: "1" } }, []);
  expect(excludeSelector([{}], selector)).toBe("unchanged");
  expect(excludeSelector([{}, { matchExpressions: [{ key: "y", operator: "Exists" }] }], selector)).toEqual([
    {},
    {
      matchExpressions: [
        { key: "y", operator: "Exists" },
        { key: "x", operator: "NotIn", values: ["1"] },
      ],
    },
  ]);
  expect(excludeSelector([{ matchExpressions: "x" }, null, 5], selector)).toBe("unchanged");
});

test("more terms than a scheduler should evaluate are not written", () => {
  const { selector } = compileSelector({ matchLabels: { x: "1", y: "2" } }, []);
  const terms = Array.from({ length: 200 }, (_, i) => ({
    matchExpressions: [{ key: "z", operator: "In", values: [`${i}`] }],
  }));
  expect(excludeSelector(terms, selector)).toBe("too many");
});
