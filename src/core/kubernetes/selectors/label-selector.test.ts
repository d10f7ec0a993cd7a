import fc from "fast-check";
import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../../json.ts";
import { fieldPath } from "../../path.ts";
import {
  type CompiledSelector,
  compileSelector,
  matches,
  matchesPartly,
  requiredLabels,
  whyNot,
} from "./label-selector.ts";

function compiled(selector: Json | undefined): CompiledSelector {
  const result = compileSelector(selector, ["spec", "podSelector"]);
  expect(result.problems).toEqual([]);
  return result.selector;
}

const one = (operator: string, ...values: string[]): Json => ({
  matchExpressions: [{ key: "zone", operator, ...(values.length > 0 ? { values } : {}) }],
});

describe("absent and empty", () => {
  test.each<[string, Json | undefined, string]>([
    ["absent", undefined, "nothing"],
    ["null", null, "nothing"],
    ["{}", {}, "everything"],
    ["empty members", { matchLabels: {}, matchExpressions: [] }, "everything"],
    ["null members", { matchLabels: null, matchExpressions: null }, "everything"],
  ])("%s", (_what, selector, kind) => {
    expect(compiled(selector)).toEqual({ kind });
    expect(matches(compiled(selector), undefined)).toBe(kind === "everything");
    expect(matches(compiled(selector), { a: "b" })).toBe(kind === "everything");
    expect(matchesPartly(compiled(selector), {}, () => false)).toBe(kind === "everything" ? "yes" : "no");
  });
});

test.each<[Json, JsonObject | undefined, boolean]>([
  [one("In", "a", "b"), { zone: "a" }, true],
  [one("In", "a", "b"), { zone: "c" }, false],
  [one("In", "a"), {}, false],
  [one("In", "a"), undefined, false],
  [one("In", ""), { zone: "" }, true],
  [one("In", ""), {}, false],
  [one("NotIn", "a"), { zone: "a" }, false],
  [one("NotIn", "a"), { zone: "b" }, true],
  [one("NotIn", "a"), {}, true],
  [one("Exists"), { zone: "" }, true],
  [one("Exists"), {}, false],
  [one("Exists"), { zone: null }, false],
  [one("DoesNotExist"), { zone: "" }, false],
  [one("DoesNotExist"), { other: "x" }, true],
  [{ matchLabels: { zone: "a", kind: "x" } }, { zone: "a", kind: "x", more: "y" }, true],
  [{ matchLabels: { zone: "a", kind: "x" } }, { zone: "a" }, false],
  [
    { matchLabels: { zone: "a" }, matchExpressions: [{ key: "zone", operator: "NotIn", values: ["a"] }] },
    { zone: "a" },
    false,
  ],
])("%j on %j: %s", (selector, labels, expected) => {
  expect(matches(compiled(selector), labels)).toBe(expected);
  expect(whyNot(compiled(selector), labels) === undefined).toBe(expected);
});

test("keys that every object inherits are labels like others", () => {
  const selector = compiled({ matchExpressions: [{ key: "constructor", operator: "Exists" }] });
  expect(matches(selector, {})).toBe(false);
  expect(matches(selector, { constructor: "x" } as unknown as JsonObject)).toBe(true);
  const absent = compiled({ matchExpressions: [{ key: "toString", operator: "DoesNotExist" }] });
  expect(matches(absent, {})).toBe(true);
  // Not a label key by its syntax, so a problem, and never a prototype.
  expect(compileSelector(JSON.parse('{"matchLabels":{"__proto__":"a"}}'), []).problems).toHaveLength(1);
});

test.each<[string, Json, string[]]>([
  ["a text", "app=web", [""]],
  ["a list", [], [""]],
  ["an unknown field", { matchLabel: { a: "b" } }, ["matchLabel"]],
  ["a field that everything inherits", JSON.parse('{"constructor":1}'), ["constructor"]],
  ["labels in a list", { matchLabels: ["a"] }, ["matchLabels"]],
  ["a label key", { matchLabels: { "a b": "c" } }, ["matchLabels[a b]"]],
  ["a label value", { matchLabels: { a: "b c" } }, ["matchLabels.a"]],
  ["a number as value", { matchLabels: { a: 1 } }, ["matchLabels.a"]],
  ["a null as value", { matchLabels: { a: null } }, ["matchLabels.a"]],
  ["expressions as an object", { matchExpressions: {} }, ["matchExpressions"]],
  ["no expression", { matchExpressions: [null, 1] }, ["matchExpressions[0]", "matchExpressions[1]"]],
  [
    "an empty expression",
    { matchExpressions: [{}] },
    ["matchExpressions[0].key", "matchExpressions[0].operator"],
  ],
  ["a wrong key", { matchExpressions: [{ key: 1, operator: "Exists" }] }, ["matchExpressions[0].key"]],
  ["a wrong operator", { matchExpressions: [{ key: "a", operator: 1 }] }, ["matchExpressions[0].operator"]],
  [
    "Gt",
    { matchExpressions: [{ key: "a", operator: "Gt", values: ["1"] }] },
    ["matchExpressions[0].operator"],
  ],
  [
    "lower case",
    { matchExpressions: [{ key: "a", operator: "in", values: ["1"] }] },
    ["matchExpressions[0].operator"],
  ],
  ["In without values", { matchExpressions: [{ key: "a", operator: "In" }] }, ["matchExpressions[0].values"]],
  [
    "NotIn without values",
    { matchExpressions: [{ key: "a", operator: "NotIn", values: [] }] },
    ["matchExpressions[0].values"],
  ],
  [
    "Exists with values",
    { matchExpressions: [{ key: "a", operator: "Exists", values: ["x"] }] },
    ["matchExpressions[0].values"],
  ],
  [
    "DoesNotExist with values",
    { matchExpressions: [{ key: "a", operator: "DoesNotExist", values: ["x"] }] },
    ["matchExpressions[0].values"],
  ],
  [
    "values as a string",
    { matchExpressions: [{ key: "a", operator: "In", values: "x" }] },
    ["matchExpressions[0].values"],
  ],
  [
    "a number among values",
    { matchExpressions: [{ key: "a", operator: "In", values: ["x", 1] }] },
    ["matchExpressions[0].values[1]"],
  ],
  [
    "a bad value",
    { matchExpressions: [{ key: "a", operator: "In", values: ["x", "-"] }] },
    ["matchExpressions[0].values[1]"],
  ],
  [
    "an unknown field",
    { matchExpressions: [{ key: "a", operator: "Exists", value: "x" }] },
    ["matchExpressions[0].value"],
  ],
])("reports a problem: %s", (_what, selector, places) => {
  const result = compileSelector(selector, ["sel"]);
  expect(result.selector).toEqual({ kind: "nothing" });
  expect(result.problems.map(({ path }) => fieldPath(path))).toEqual(
    places.map((place) => (place === "" ? "sel" : place.startsWith("[") ? `sel${place}` : `sel.${place}`)),
  );
  for (const { message } of result.problems) expect(message).toMatch(/\w+ \w+/);
});

test("one bad requirement makes the whole selector select nothing", () => {
  const { selector, problems } = compileSelector({ matchLabels: { good: "yes", bad: "a b" } }, []);
  expect(problems).toHaveLength(1);
  expect(matches(selector, { good: "yes" })).toBe(false);
});

test.each<[Json | undefined, JsonObject | undefined, string | undefined]>([
  [{ matchLabels: { kind: "batch" } }, {}, "needs kind=batch, there is no label kind"],
  [{ matchLabels: { kind: "batch" } }, { kind: "web" }, "needs kind=batch, kind is web"],
  [{ matchLabels: { kind: "batch" } }, { kind: "" }, 'needs kind=batch, kind is ""'],
  [one("In", "a", "b"), { zone: "c" }, "needs zone in (a, b), zone is c"],
  [one("In", ""), undefined, 'needs zone="", there is no label zone'],
  [one("NotIn", "a"), { zone: "a" }, "needs zone!=a, zone is a"],
  [one("NotIn", "a", "b"), { zone: "b" }, "needs zone not in (a, b), zone is b"],
  [one("Exists"), {}, "needs a label zone, there is no label zone"],
  [one("DoesNotExist"), { zone: "a" }, "needs no label zone, zone is a"],
  [{ matchLabels: { a: "1", b: "2" } }, { a: "1" }, "needs b=2, there is no label b"],
  [undefined, {}, "selects nothing"],
  [{}, {}, undefined],
])("why %j does not match %j", (selector, labels, reason) => {
  expect(whyNot(compiled(selector), labels)).toBe(reason);
});

test("required labels for an index", () => {
  const selector = compiled({
    matchLabels: { a: "1" },
    matchExpressions: [
      { key: "b", operator: "In", values: ["x", "y", "x"] },
      { key: "c", operator: "Exists" },
      { key: "d", operator: "NotIn", values: ["z"] },
      { key: "e", operator: "DoesNotExist" },
    ],
  });
  expect(requiredLabels(selector)).toEqual([
    { key: "a", values: ["1"] },
    { key: "b", values: ["x", "y"] },
    { key: "c", values: undefined },
  ]);
  expect(requiredLabels(compiled({}))).toEqual([]);
  expect(requiredLabels(compiled(undefined))).toEqual([]);
});

/** Read straight from the selector as written, by the four sentences of the documentation. */
/** A label selector as users write it. */
interface LabelSelector {
  readonly matchLabels?: Readonly<Record<string, string>>;
  readonly matchExpressions?: readonly {
    readonly key: string;
    readonly operator: string;
    readonly values?: readonly string[];
  }[];
}

function bruteForce(selector: LabelSelector, labels: Record<string, string>): boolean {
  const has = (key: string) => Object.keys(labels).includes(key);
  return (
    Object.entries(selector.matchLabels ?? {}).every(([key, value]) => has(key) && labels[key] === value) &&
    (selector.matchExpressions ?? []).every(({ key, operator, values = [] }) => {
      const within = has(key) && values.some((value) => value === labels[key]);
      if (operator === "In") return within;
      if (operator === "NotIn") return !within;
      return (operator === "Exists") === has(key);
    })
  );
}

const KEYS = ["a", "b", "example.com/c"];
const VALUES = ["", "x", "y"];
const key = fc.constantFrom(...KEYS);
const value = fc.constantFrom(...VALUES);
const expression = fc.oneof(
  fc.record({
    key,
    operator: fc.constantFrom("In", "NotIn"),
    values: fc.array(value, { minLength: 1, maxLength: 3 }),
  }),
  fc.record({ key, operator: fc.constantFrom("Exists", "DoesNotExist") }),
);
const selectors = fc.record(
  {
    matchLabels: fc.dictionary(key, value, { maxKeys: 2 }),
    matchExpressions: fc.array(expression, { maxLength: 3 }),
  },
  { requiredKeys: [] },
);
const labelSets = fc.dictionary(key, value);

test("matches as a plain reading of the selector does", () => {
  fc.assert(
    fc.property(selectors, labelSets, (selector, labels) => {
      const expected = bruteForce(selector as LabelSelector, labels);
      expect(matches(compiled(selector as Json), labels)).toBe(expected);
      expect(whyNot(compiled(selector as Json), labels) === undefined).toBe(expected);
      expect(matchesPartly(compiled(selector as Json), labels, () => true)).toBe(expected ? "yes" : "no");
      for (const label of requiredLabels(compiled(selector as Json))) {
        if (!expected) continue;
        expect(Object.keys(labels)).toContain(label.key);
        if (label.values !== undefined) expect(label.values).toContain(labels[label.key]);
      }
    }),
    { numRuns: 500 },
  );
});

/** Every possible assignment of the unknown labels; "fresh" stands for all values that no selector names. */
function completions(labels: Record<string, string>, unknown: readonly string[]): Record<string, string>[] {
  let all = [Object.fromEntries(Object.entries(labels).filter(([name]) => !unknown.includes(name)))];
  for (const name of unknown) {
    all = all.flatMap((some) => [some, ...[...VALUES, "fresh"].map((text) => ({ ...some, [name]: text }))]);
  }
  return all;
}

test("three-valued matching is definite exactly where all completions agree", () => {
  fc.assert(
    fc.property(selectors, labelSets, fc.subarray(KEYS), (selector, labels, unknown) => {
      const outcomes = completions(labels, unknown).map((labels) =>
        bruteForce(selector as LabelSelector, labels),
      );
      const expected = outcomes.every(Boolean) ? "yes" : outcomes.some(Boolean) ? "unknown" : "no";
      const answer = matchesPartly(compiled(selector as Json), labels, (name) => !unknown.includes(name));
      expect(answer).toBe(expected);
    }),
    { numRuns: 1000 },
  );
});

test("never throws for any JSON, and an invalid selector selects nothing", () => {
  fc.assert(
    fc.property(fc.jsonValue(), fc.jsonValue(), fc.jsonValue(), (whole, labels, expressions) => {
      for (const selector of [whole, { matchLabels: labels, matchExpressions: expressions }] as Json[]) {
        const result = compileSelector(selector, []);
        if (result.problems.length > 0) expect(matches(result.selector, {})).toBe(false);
        expect(typeof matches(result.selector, whole as JsonObject)).toBe("boolean");
      }
    }),
  );
});
