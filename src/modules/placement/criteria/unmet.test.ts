import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { matchesPodPlacement } from "../../../../test/builders/pod.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import { CriterionValue } from "./criterion.ts";
import { nodeSelector as nodeSelectorCriterion } from "./node-selector.ts";
import { requiredNodeAffinity } from "./required-node-affinity.ts";
import { ComparedPod, extendsElement } from "./unmet.ts";
import { WorkLimit } from "./work-limit.ts";

/** A pod with this nodeSelector and these required terms. */
const podWith = (nodeSelector: JsonObject, terms: readonly Json[] | undefined) =>
  new ComparedPod({
    nodeSelector,
    ...(terms === undefined
      ? {}
      : {
          affinity: {
            nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
          },
        }),
  });

function meetsTerms(
  nodeSelector: JsonObject,
  terms: readonly Json[] | undefined,
  wanted: readonly JsonObject[],
): boolean {
  const { prepared } = new CriterionValue(requiredNodeAffinity, wanted);
  return (
    requiredNodeAffinity.unmet?.(podWith(nodeSelector, terms), prepared as never, new WorkLimit()).length ===
    0
  );
}

const on = (...matchExpressions: Json[]): JsonObject => ({ matchExpressions });
const zone = (operator: string, ...values: string[]): JsonObject =>
  values.length === 0 ? { key: "zone", operator } : { key: "zone", operator, values };
const named = (operator: string, name: string): JsonObject => ({
  matchFields: [{ key: "metadata.name", operator, values: [name] }],
});

describe("whether a pod's terms are as strict as a policy's", () => {
  test.each<[string, JsonObject, readonly Json[] | undefined, readonly JsonObject[], boolean]>([
    ["the same", {}, [on(zone("In", "a"))], [on(zone("In", "a"))], true],
    ["fewer values", {}, [on(zone("In", "a"))], [on(zone("In", "b", "a"))], true],
    ["more values", {}, [on(zone("In", "a", "b"))], [on(zone("In", "a"))], false],
    [
      "one requirement more",
      {},
      [on(zone("In", "a"), { key: "x", operator: "Exists" })],
      [on(zone("In", "a"))],
      true,
    ],
    [
      "one requirement less",
      {},
      [on(zone("In", "a"))],
      [on(zone("In", "a"), { key: "x", operator: "Exists" })],
      false,
    ],
    [
      "one of the pod's terms is wider",
      {},
      [on(zone("In", "a")), on(zone("Exists"))],
      [on(zone("In", "a"))],
      false,
    ],
    [
      "each by another of the policy's",
      {},
      [on(zone("In", "a")), on(zone("In", "b"))],
      [on(zone("In", "b")), on(zone("In", "a"))],
      true,
    ],
    ["by the nodeSelector", { zone: "a" }, undefined, [on(zone("In", "a"))], true],
    ["by another nodeSelector", { zone: "b" }, undefined, [on(zone("In", "a"))], false],
    ["no requirement at all", {}, undefined, [on(zone("In", "a"))], false],
    ["an empty term of the pod, which matches nothing", {}, [{}], [on(zone("In", "a"))], true],
    ["only an empty term of the policy, which matches nothing", {}, undefined, [{}], false],
    ["the same, of a pod with terms", {}, [on(zone("In", "a"))], [{}, {}], false],
    ["the same, of a pod that runs nowhere either", {}, [{}], [{}], true],
    ["a term that no node matches", {}, [on(zone("In", "a"), zone("In", "b"))], [on(zone("In", "c"))], true],
    ["an empty term beside another", {}, [on(zone("In", "a"))], [{}, on(zone("In", "a"))], true],
    ["NotIn by In", {}, [on(zone("In", "a"))], [on(zone("NotIn", "b"))], true],
    ["NotIn by absence", {}, [on(zone("DoesNotExist"))], [on(zone("NotIn", "b"))], true],
    ["Exists by a bound", {}, [on(zone("Gt", "3"))], [on(zone("Exists"))], true],
    ["Exists not by NotIn", {}, [on(zone("NotIn", "a"))], [on(zone("Exists"))], false],
    ["a bound by a higher one", {}, [on(zone("Gt", "5"))], [on(zone("Gt", "3"))], true],
    ["a bound not by a lower one", {}, [on(zone("Gt", "2"))], [on(zone("Gt", "3"))], false],
    ["a bound by values", {}, [on(zone("In", "4", "5"))], [on(zone("Gt", "3"))], true],
    ["the name of a node", {}, [named("In", "n1")], [named("In", "n1")], true],
    ["another node", {}, [named("In", "n2")], [named("In", "n1")], false],
    ["not another node", {}, [named("In", "n2")], [named("NotIn", "n1")], true],
  ])("%s: %#", (_what, nodeSelector, terms, wanted, expected) => {
    expect(meetsTerms(nodeSelector, terms, wanted)).toBe(expected);
  });

  const VALUES = ["1", "2", "3"];
  const requirement = fc.oneof(
    fc.record({
      key: fc.constantFrom("x", "y"),
      operator: fc.constantFrom("In", "NotIn"),
      values: fc.uniqueArray(fc.constantFrom(...VALUES), { minLength: 1 }),
    }),
    fc.record({ key: fc.constantFrom("x", "y"), operator: fc.constantFrom("Exists", "DoesNotExist") }),
    fc.record({
      key: fc.constantFrom("x", "y"),
      operator: fc.constantFrom("Gt", "Lt"),
      values: fc.constantFrom(...VALUES).map((value) => [value]),
    }),
  );
  const terms = fc.array(
    fc.array(requirement, { maxLength: 2 }).map((list) => on(...(list as unknown as Json[]))),
    { minLength: 1, maxLength: 2 },
  );
  const nodes = ["", ...VALUES].flatMap((x) =>
    ["", ...VALUES].map((y) => ({ name: "n", labels: { ...(x && { x }), ...(y && { y }) } as JsonObject })),
  );
  const required = (list: readonly JsonObject[]): JsonObject => ({
    affinity: {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: list } },
    },
  });

  test("it never accepts a pod that may run on a node which the policy does not allow", () => {
    let said = 0;
    fc.assert(
      fc.property(
        fc.option(terms, { nil: undefined }),
        fc.dictionary(fc.constantFrom("x", "y"), fc.constantFrom(...VALUES), { maxKeys: 1 }),
        terms,
        (own, nodeSelector, wanted) => {
          if (!meetsTerms(nodeSelector, own, wanted)) return;
          // Empty terms of a policy are ignored; without others there is no requirement.
          const requirements = wanted.filter(
            ({ matchExpressions }) => (matchExpressions as Json[]).length > 0,
          );
          if (requirements.length === 0) return;
          said += 1;
          const spec = { nodeSelector, ...(own === undefined ? {} : required(own)) };
          for (const node of nodes) {
            if (matchesPodPlacement(spec, node))
              expect(matchesPodPlacement(required(requirements), node)).toBe(true);
          }
        },
      ),
      { numRuns: 2_000 },
    );
    expect(said).toBeGreaterThan(50);
  });
});

test.each<[readonly Json[] | undefined, boolean]>([
  [undefined, false],
  [[], false],
  [[on(zone("In", "a"))], true],
  [[on(zone("In", "a")), on(zone("In", "a"), { key: "x", operator: "Exists" })], true],
  [[on(zone("In", "a")), on(zone("In", "b"))], false],
])("a label that every term pins: %j", (terms, expected) => {
  const unmet = nodeSelectorCriterion.unmet?.(podWith({}, terms), [["zone", "a"]], new WorkLimit());
  expect(unmet?.length === 0).toBe(expected);
});

test.each<[string, Json, Json, boolean]>([
  ["equal", { a: 1, b: { c: [1] } }, { a: 1, b: { c: [1] } }, true],
  ["a longer list", { b: { c: [2, 1] } }, { b: { c: [1] } }, true],
  ["a shorter list", { b: { c: [2] } }, { b: { c: [1] } }, false],
  ["a list that was not there", { a: 1, c: [{ d: 1 }] }, { a: 1 }, true],
  ["another member that was not there", { a: 1, b: "x" }, { a: 1 }, false],
  ["another value", { a: 2 }, { a: 1 }, false],
  ["an empty list, absent", {}, { a: [] }, true],
])("whether an element has all of another: %s", (_what, given, wanted, expected) => {
  expect(extendsElement(given, wanted)).toBe(expected);
});
