import fc from "fast-check";
import { expect, test } from "vitest";
import { required, worker } from "../../../../test/builders/guard.ts";
import type { JsonObject } from "../../../core/json.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { matchesPodPlacement } from "../../../core/kubernetes/selectors/node-selector.ts";
import { Selection } from "./candidates.ts";

const requirement = fc.record({
  key: fc.constantFrom("x", "y"),
  operator: fc.constantFrom("In", "NotIn", "Exists", "DoesNotExist", "Gt", "bad"),
  values: fc.uniqueArray(fc.constantFrom("1", "2"), { maxLength: 2 }),
});
const field = fc.record({
  key: fc.constant("metadata.name"),
  operator: fc.constantFrom("In", "NotIn"),
  values: fc.constantFrom(["a"], ["b"]),
});
const term = fc.record(
  {
    matchExpressions: fc.array(requirement, { maxLength: 2 }),
    matchFields: fc.array(field, { maxLength: 2 }),
  },
  { requiredKeys: [] },
) as unknown as fc.Arbitrary<JsonObject>;

const NODES = ["a", "b"].flatMap((name) =>
  [{}, { x: "1" }, { x: "2", y: "1" }, { y: "2" }].map((labels) => worker(name, labels)),
);

test("an index over terms selects what the terms select", () => {
  fc.assert(
    fc.property(
      fc.option(fc.array(term, { maxLength: 6 }), { nil: undefined }),
      fc.dictionary(fc.constantFrom("x", "y"), fc.constantFrom("1", "2"), { maxKeys: 1 }),
      (terms, nodeSelector) => {
        const spec = { nodeSelector, ...(terms === undefined ? {} : required(...terms)) };
        const selection = new Selection(spec);
        for (const node of NODES)
          expect(selection.selects(node)).toBe(
            matchesPodPlacement(spec, { name: nameOf(node), labels: labelsOf(node) }),
          );
      },
    ),
    { numRuns: 1_000 },
  );
});
