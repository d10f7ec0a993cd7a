import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { matchesPodPlacement } from "../../../../test/builders/pod.ts";
import type { Json, JsonObject } from "../../json.ts";
import { fieldPath } from "../../path.ts";
import {
  compileNodeSelector,
  compilePodPlacement,
  matchesNode,
  matchesPlacement,
  type NodeLike,
} from "./node-selector.ts";

const node = (labels: JsonObject | undefined, name = "n1"): NodeLike => ({ name, labels });
const terms = (...list: Json[]): Json => ({ nodeSelectorTerms: list });
const label = (key: string, operator: string, ...values: string[]): Json => ({
  matchExpressions: [{ key, operator, values }],
});
const field = (operator: string, ...values: string[]): Json => ({
  matchFields: [{ key: "metadata.name", operator, values }],
});

function matching(selector: Json, on: NodeLike): boolean {
  const { terms, problems } = compileNodeSelector(selector, []);
  expect(problems).toEqual([]);
  return matchesNode(terms, on);
}

test.each<[Json, NodeLike, boolean]>([
  [terms(label("zone", "In", "a", "b")), node({ zone: "b" }), true],
  [terms(label("zone", "In", "a")), node({}), false],
  [terms(label("zone", "NotIn", "a")), node({}), true],
  [terms(label("zone", "NotIn", "a")), node({ zone: "a" }), false],
  [terms(label("zone", "Exists")), node({ zone: "" }), true],
  [terms(label("zone", "Exists")), node(undefined), false],
  [terms(label("zone", "DoesNotExist")), node(undefined), true],
  [terms(label("zone", "DoesNotExist")), node({ zone: "a" }), false],
  [terms(label("cpus", "Gt", "4")), node({ cpus: "5" }), true],
  [terms(label("cpus", "Gt", "4")), node({ cpus: "4" }), false],
  [terms(label("cpus", "Gt", "4")), node({ cpus: "10" }), true],
  [terms(label("cpus", "Lt", "4")), node({ cpus: "3" }), true],
  [terms(label("cpus", "Lt", "10")), node({ cpus: "9" }), true],
  [terms(label("cpus", "Lt", "4")), node({ cpus: "4" }), false],
  [terms(label("cpus", "Lt", "4")), node({ cpus: "-9" }), true],
  [terms(label("cpus", "Gt", "007")), node({ cpus: "08" }), true],
  [terms(label("cpus", "Gt", "4")), node({ cpus: "many" }), false],
  [terms(label("cpus", "Lt", "4")), node({ cpus: "" }), false],
  [terms(label("cpus", "Lt", "4")), node({}), false],
  [terms(label("cpus", "Gt", "4")), node({ cpus: "5.5" }), false],
  [terms(label("cpus", "Gt", "4")), node({ cpus: "9223372036854775807" }), true],
  [terms(label("cpus", "Gt", "4")), node({ cpus: "9223372036854775808" }), false],
  [terms(label("cpus", "Gt", "9007199254740992")), node({ cpus: "9007199254740993" }), true],
  [terms(field("In", "n1")), node({}), true],
  [terms(field("In", "n2")), node({}), false],
  [terms(field("NotIn", "n1")), node({}), false],
  [terms(field("NotIn", "n2")), node({}), true],
  [terms(field("In", "n2")), node({}, ""), true],
  [terms(label("zone", "In", "a"), field("In", "n1")), node({}), true],
  [
    terms({ ...(label("zone", "In", "a") as JsonObject), ...(field("In", "n1") as JsonObject) }),
    node({}),
    false,
  ],
  [terms({}), node({}), false],
  [terms(null), node({}), false],
  [terms({ matchExpressions: [], matchFields: null }), node({}), false],
  [terms({}, field("In", "n1")), node({}), true],
])("%j on %j: %s", (selector, on, expected) => {
  expect(matching(selector, on)).toBe(expected);
});

describe("problems", () => {
  test.each<[string, Json, string[]]>([
    ["a list", [], ["sel"]],
    ["no terms", {}, ["sel.nodeSelectorTerms"]],
    ["empty terms", terms(), ["sel.nodeSelectorTerms"]],
    ["terms as an object", { nodeSelectorTerms: {} }, ["sel.nodeSelectorTerms"]],
    ["an unknown field", { nodeSelectorTerms: [{}], x: 1 }, ["sel.x"]],
    ["a string as a term", terms("a"), ["sel.nodeSelectorTerms[0]"]],
    [
      "expressions as a string",
      terms({ matchExpressions: "a" }),
      ["sel.nodeSelectorTerms[0].matchExpressions"],
    ],
    [
      "an unknown operator",
      terms(label("a", "Near", "b")),
      ["sel.nodeSelectorTerms[0].matchExpressions[0].operator"],
    ],
    ["Gt without a value", terms(label("a", "Gt")), ["sel.nodeSelectorTerms[0].matchExpressions[0].values"]],
    [
      "Gt with two",
      terms(label("a", "Gt", "1", "2")),
      ["sel.nodeSelectorTerms[0].matchExpressions[0].values"],
    ],
    ["Gt with a word", terms(label("a", "Gt", "x")), ["sel.nodeSelectorTerms[0].matchExpressions[0].values"]],
    // A label value can't begin with a sign, and Kubernetes applies the same rule to the bound.
    [
      "Lt with a sign",
      terms(label("a", "Lt", "-1")),
      ["sel.nodeSelectorTerms[0].matchExpressions[0].values[0]"],
    ],
    [
      "another field",
      terms({ matchFields: [{ key: "spec.x", operator: "In", values: ["a"] }] }),
      ["sel.nodeSelectorTerms[0].matchFields[0].key"],
    ],
    ["two names", terms(field("In", "a", "b")), ["sel.nodeSelectorTerms[0].matchFields[0].values"]],
    ["Exists on a field", terms(field("Exists", "a")), ["sel.nodeSelectorTerms[0].matchFields[0].operator"]],
    ["no node's name", terms(field("In", "A b")), ["sel.nodeSelectorTerms[0].matchFields[0].values[0]"]],
  ])("%s", (_what, selector, places) => {
    const { terms, problems } = compileNodeSelector(selector, ["sel"]);
    expect(problems.map(({ path }) => fieldPath(path))).toEqual(places);
    expect(matchesNode(terms, node({ a: "5" }))).toBe(false);
  });

  test("a broken term matches nothing and leaves the others alone", () => {
    const broken = {
      matchExpressions: [
        { key: "zone", operator: "Exists" },
        { key: "zone", operator: "Bad" },
      ],
    };
    const { terms: compiled } = compileNodeSelector(terms(broken, {}, field("In", "n1")), []);
    expect(compiled.map(({ kind }) => kind)).toEqual(["broken", "empty", "usable"]);
    expect(matchesNode(compiled, node({ zone: "a" }, "n1"))).toBe(true);
    expect(matchesNode(compiled, node({ zone: "a" }, "n2"))).toBe(false);
  });

  test("a field that Kubernetes drops is named, and the term still works", () => {
    const term = { matchExpressions: [{ key: "zone", operator: "Exists", why: "x" }], weight: 1 };
    const { terms: compiled, problems } = compileNodeSelector(terms(term), []);
    expect(problems).toHaveLength(2);
    expect(matchesNode(compiled, node({ zone: "a" }))).toBe(true);
  });

  test("an absent selector gives no terms and no problem", () => {
    expect(compileNodeSelector(undefined, [])).toEqual({ terms: [], problems: [] });
    expect(compileNodeSelector(null, [])).toEqual({ terms: [], problems: [] });
  });
});

describe("where a pod may run", () => {
  const required = (value: Json): Json => ({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: value } },
  });

  test.each<[string, Json, boolean]>([
    ["nothing asked", {}, true],
    ["null everywhere", { nodeSelector: null, affinity: null }, true],
    ["null required", required(null), true],
    ["empty map", { nodeSelector: {} }, true],
    ["the label", { nodeSelector: { zone: "a" } }, true],
    ["another value", { nodeSelector: { zone: "b" } }, false],
    ["a missing label", { nodeSelector: { zone: "a", disk: "ssd" } }, false],
    ["an empty value of a missing label", { nodeSelector: { disk: "" } }, false],
    ["an inherited key", { nodeSelector: { constructor: "a" } }, false],
    ["a number", { nodeSelector: { zone: 1 } }, false],
    ["a list", { nodeSelector: ["zone"] }, false],
    ["required without terms", required({}), false],
    ["required with an empty term", required(terms({})), false],
    ["required met", required(terms(label("zone", "In", "a"))), true],
    [
      "both, one of them not met",
      { nodeSelector: { zone: "b" }, ...(required(terms(label("zone", "In", "a"))) as JsonObject) },
      false,
    ],
    [
      "preferred only",
      { affinity: { nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{}] } } },
      true,
    ],
    ["no spec at all", null, true],
  ])("%s: %s", (_what, spec, expected) => {
    expect(matchesPodPlacement(spec, node({ zone: "a" }))).toBe(expected);
  });

  test("a compiled constraint matches many nodes", () => {
    const placement = compilePodPlacement({ nodeSelector: { zone: "a" } });
    expect([node({ zone: "a" }), node({ zone: "b" })].map((on) => matchesPlacement(placement, on))).toEqual([
      true,
      false,
    ]);
  });
});

interface Written {
  readonly matchExpressions?: readonly { key: string; operator: string; values?: readonly string[] }[];
  readonly matchFields?: readonly { key: string; operator: string; values: readonly string[] }[];
}

/** Read straight from the terms as written, numbers small enough for plain arithmetic. */
function bruteForce(list: readonly Written[], on: { name: string; labels: Record<string, string> }): boolean {
  for (const { matchExpressions = [], matchFields = [] } of list) {
    if (matchExpressions.length + matchFields.length === 0) continue;
    const labelsMet = matchExpressions.every(({ key, operator, values = [] }) => {
      const value = on.labels[key];
      if (operator === "In") return value !== undefined && values.includes(value);
      if (operator === "NotIn") return value === undefined || !values.includes(value);
      if (operator === "Exists") return value !== undefined;
      if (operator === "DoesNotExist") return value === undefined;
      if (value === undefined || !/^\d+$/.test(value)) return false;
      return operator === "Gt" ? Number(value) > Number(values[0]) : Number(value) < Number(values[0]);
    });
    const namesMet = matchFields.every(
      ({ operator, values }) => values.includes(on.name) === (operator === "In"),
    );
    if (labelsMet && namesMet) return true;
  }
  return false;
}

const keys = fc.constantFrom("a", "b");
const values = fc.constantFrom("", "x", "3", "7", "007");
const expressions = fc.oneof(
  fc.record({
    key: keys,
    operator: fc.constantFrom("In", "NotIn"),
    values: fc.array(values, { minLength: 1, maxLength: 2 }),
  }),
  fc.record({ key: keys, operator: fc.constantFrom("Exists", "DoesNotExist") }),
  fc.record({ key: keys, operator: fc.constantFrom("Gt", "Lt"), values: fc.tuple(fc.nat(9).map(String)) }),
);
const fields = fc.record({
  key: fc.constant("metadata.name"),
  operator: fc.constantFrom("In", "NotIn"),
  values: fc.tuple(fc.constantFrom("n1", "n2")),
});
const term = fc.record(
  {
    matchExpressions: fc.array(expressions, { maxLength: 2 }),
    matchFields: fc.array(fields, { maxLength: 2 }),
  },
  { requiredKeys: [] },
);
const nodes = fc.record({ name: fc.constantFrom("n1", "n2", "n3"), labels: fc.dictionary(keys, values) });

test("matches as a plain reading of the terms does", () => {
  fc.assert(
    fc.property(fc.array(term, { minLength: 1, maxLength: 3 }), nodes, (list, on) => {
      const expected = bruteForce(list as Written[], on);
      expect(matching({ nodeSelectorTerms: list } as Json, on)).toBe(expected);
      const spec = {
        affinity: {
          nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: list } },
        },
      };
      expect(matchesPodPlacement(spec as Json, on)).toBe(expected);
    }),
    { numRuns: 1000 },
  );
});

test("never throws for any JSON", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), (whole, part) => {
      for (const value of [
        whole,
        terms(part as Json),
        terms({ matchExpressions: part as Json, matchFields: [whole as Json] }),
      ]) {
        const { terms: compiled } = compileNodeSelector(value as Json, []);
        expect(typeof matchesNode(compiled, node(whole as JsonObject))).toBe("boolean");
        expect(typeof matchesPodPlacement(value as Json, node({}))).toBe("boolean");
      }
    }),
  );
});
