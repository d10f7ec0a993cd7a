import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { again, anyKey, jsonObjectWith, jsonWith } from "../../../test/builders/json.ts";
import type { Json, JsonObject } from "../json.ts";
import { equal } from "../json.ts";
import type { Path } from "../path.ts";
import { Draft } from "./draft.ts";

type Step = { readonly do: "set" | "append" | "remove"; readonly path: Path; readonly value: Json };

const anyStep: fc.Arbitrary<Step> = fc.record({
  do: fc.constantFrom("set", "append", "remove"),
  path: fc.array(
    fc.oneof({ weight: 4, arbitrary: anyKey }, { weight: 1, arbitrary: fc.integer({ min: -1, max: 3 }) }),
    {
      maxLength: 4,
    },
  ),
  value: jsonWith(anyKey),
});

function take(draft: Draft, step: Step): boolean {
  if (step.do === "set") return draft.set(step.path, step.value, undefined);
  if (step.do === "append") return draft.append(step.path, step.value, undefined);
  return draft.remove(step.path, undefined);
}

test("undo to any mark restores the state, for any steps", () => {
  fc.assert(
    fc.property(
      jsonObjectWith(anyKey),
      fc.array(anyStep, { maxLength: 12 }),
      fc.nat(12),
      (object, steps, at) => {
        const draft = new Draft(again(object));
        const before: { mark: number; text: Json }[] = [{ mark: draft.mark(), text: again(draft.object) }];
        for (const step of steps) {
          const done = take(draft, step);
          const last = before.at(-1);
          // A refused edit left no trace.
          if (!done) expect(draft.mark()).toBe(last?.mark);
          if (!done) expect(equal(draft.object, last?.text)).toBe(true);
          before.push({ mark: draft.mark(), text: again(draft.object) });
        }
        const chosen = before[Math.min(at, before.length - 1)];
        draft.undo(chosen?.mark ?? 0);
        expect(equal(draft.object, chosen?.text)).toBe(true);
        draft.undo(0);
        expect(equal(draft.object, object)).toBe(true);
        expect(draft.edits).toEqual([]);
      },
    ),
    { numRuns: 300 },
  );
});

test("a set value reads back, and all other values keep their identity", () => {
  fc.assert(
    fc.property(jsonObjectWith(anyKey), anyKey, anyKey, jsonWith(anyKey), (object, outer, inner, value) => {
      const draft = new Draft(object);
      const held = new Map(Object.entries(object));
      if (!draft.set([outer, inner], value, undefined)) return;
      expect(equal(draft.get(outer, inner), value)).toBe(true);
      for (const [key, one] of held) if (key !== outer) expect(draft.get(key)).toBe(one);
    }),
  );
});

describe("set", () => {
  test.each<[string, JsonObject, Path, Json]>([
    ["a value", { a: 1 }, ["a"], { a: 2 }],
    ["a new key", { a: 1 }, ["b"], { a: 1, b: 2 }],
    ["missing parents", {}, ["a", "b", "c"], { a: { b: { c: 2 } } }],
    ["null parents", { a: null, z: 1 }, ["a", "b"], { a: { b: 2 }, z: 1 }],
    ["inside a list", { a: [{ b: 1 }] }, ["a", 0, "b"], { a: [{ b: 2 }] }],
    ["an element", { a: [1, 5] }, ["a", 1], { a: [1, 2] }],
    ["a null element's member", { a: [null] }, ["a", 0, "b"], { a: [{ b: 2 }] }],
    ["an empty key", {}, [""], { "": 2 }],
  ])("writes %s", (_what, object, path, expected) => {
    const draft = new Draft(object);
    expect(draft.set(path, 2, undefined)).toBe(true);
    expect(draft.object).toEqual(expected);
  });

  test.each<[string, JsonObject, Path]>([
    ["no path", { a: 1 }, []],
    ["through a text", { a: "x" }, ["a", "b"]],
    ["through a number", { a: 1 }, ["a", "b"]],
    ["through false", { a: false }, ["a", "b"]],
    ["a key of a list", { a: [] }, ["a", "b"]],
    ["a number as a string in a list", { a: [1] }, ["a", "0"]],
    ["an index of an object", { a: {} }, ["a", 0]],
    ["behind the end", { a: [1] }, ["a", 1]],
    ["before the start", { a: [1] }, ["a", -1]],
    ["between two", { a: [1, 2] }, ["a", 0.5]],
    ["not a number", { a: [1] }, ["a", Number.NaN]],
    ["a list that is not there", {}, ["a", 0]],
    ["a list inside an absent value", {}, ["a", "b", 0, "c"]],
  ])("refuses %s", (_what, object, path) => {
    const draft = new Draft(object);
    const before = JSON.stringify(object);
    expect(draft.set(path, 2, undefined)).toBe(false);
    expect(JSON.stringify(object)).toBe(before);
    expect(draft.mark()).toBe(0);
  });

  test("__proto__ is a key like any other", () => {
    const draft = new Draft({});
    expect(draft.set(["__proto__", "polluted"], true, undefined)).toBe(true);
    expect(JSON.stringify(draft.object)).toBe('{"__proto__":{"polluted":true}}');
    expect(({} as JsonObject)["polluted"]).toBeUndefined();
    draft.undo(0);
    expect(JSON.stringify(draft.object)).toBe("{}");
  });

  test("later edits do not change the given value", () => {
    const shared = { terms: [{ key: "zone" }] };
    const draft = new Draft({});
    draft.set(["one"], shared, undefined);
    draft.set(["two"], shared, undefined);
    draft.append(["one", "terms"], { key: "disk" }, undefined);
    draft.set(["one", "terms", 0, "key"], "other", undefined);
    expect(shared).toEqual({ terms: [{ key: "zone" }] });
    expect(draft.get("two")).toEqual({ terms: [{ key: "zone" }] });
  });
});

describe("append", () => {
  test.each<[string, JsonObject, Path, Json]>([
    ["to a list", { a: [1] }, ["a"], { a: [1, 2] }],
    ["to an empty list", { a: [] }, ["a"], { a: [2] }],
    ["to a list that is not there", {}, ["a"], { a: [2] }],
    ["to null", { a: null }, ["a"], { a: [2] }],
    ["under missing parents", { x: 1 }, ["a", "b", "c"], { x: 1, a: { b: { c: [2] } } }],
    ["inside an element", { a: [{ b: [1] }] }, ["a", 0, "b"], { a: [{ b: [1, 2] }] }],
    ["inside a null element", { a: [null] }, ["a", 0, "b"], { a: [{ b: [2] }] }],
    ["to a null element", { a: [null] }, ["a", 0], { a: [[2]] }],
  ])("adds %s", (_what, object, path, expected) => {
    const draft = new Draft(object);
    expect(draft.append(path, 2, undefined)).toBe(true);
    expect(draft.object).toEqual(expected);
  });

  test.each<[string, JsonObject, Path]>([
    ["to an object", { a: {} }, ["a"]],
    ["to a text", { a: "x" }, ["a"]],
    ["to nothing", {}, []],
    ["to a list behind the end of another", { a: [1] }, ["a", 1]],
    ["to an index of an object", { a: {} }, ["a", 0]],
    ["through a text", { a: "x" }, ["a", "b"]],
  ])("refuses %s", (_what, object, path) => {
    const draft = new Draft(object);
    const before = JSON.stringify(object);
    expect(draft.append(path, 2, undefined)).toBe(false);
    expect(JSON.stringify(object)).toBe(before);
  });

  test("reports path and value, also if it created the list", () => {
    const draft = new Draft({});
    draft.append(["spec", "tolerations"], { key: "a" }, undefined);
    draft.append(["spec", "tolerations"], { key: "b" }, undefined);
    expect(draft.edits.map(({ kind, path, value }) => ({ kind, path, value }))).toEqual([
      { kind: "append", path: ["spec", "tolerations", 0], value: { key: "a" } },
      { kind: "append", path: ["spec", "tolerations", 1], value: { key: "b" } },
    ]);
  });
});

describe("remove", () => {
  test("removes a member, also null", () => {
    const draft = new Draft({ a: { b: null, c: 1 } });
    expect(draft.remove(["a", "b"], undefined)).toBe(true);
    expect(draft.object).toEqual({ a: { c: 1 } });
    draft.undo(0);
    expect(draft.object).toEqual({ a: { b: null, c: 1 } });
  });

  test.each<[string, Path]>([
    ["an absent value", ["x"]],
    ["inside an absent value", ["x", "y"]],
    ["inside null", ["nothing", "y"]],
    ["an element", ["list", 0]],
    ["everything", []],
    ["an inherited property", ["toString"]],
  ])("refuses %s", (_what, path) => {
    const object = { a: 1, list: [1], nothing: null };
    expect(new Draft(object).remove(path, undefined)).toBe(false);
    expect(object).toEqual({ a: 1, list: [1], nothing: null });
  });
});

describe("changed", () => {
  const old = { spec: { a: 1, b: { c: [1, 2] } }, metadata: { labels: { x: "1" } } };

  test("on CREATE everything is changed", () => {
    expect(new Draft(again(old)).changed([["spec"]])).toBe(true);
  });

  test.each<[string, JsonObject, boolean]>([
    ["the same", old, false],
    ["other order of keys", { metadata: old.metadata, spec: { b: { c: [1, 2] }, a: 1 } }, false],
    ["elsewhere", { ...old, metadata: {} }, false],
    ["another value", { ...old, spec: { ...old.spec, a: 2 } }, true],
    ["deep inside", { ...old, spec: { a: 1, b: { c: [2, 1] } } }, true],
    ["gone", { metadata: old.metadata }, true],
  ])("compares with the stored object: %s", (_what, object, expected) => {
    expect(new Draft(object, old).changed([["status"], ["spec"]])).toBe(expected);
  });

  test("follows the edits, and their undoing", () => {
    const draft = new Draft(again(old), old);
    draft.set(["spec", "a"], 2, undefined);
    expect(draft.changed([["spec", "b"]])).toBe(false);
    expect(draft.changed([["spec", "a"]])).toBe(true);
    draft.undo(0);
    expect(draft.changed([["spec"]])).toBe(false);
  });

  test("without paths nothing is changed", () => {
    expect(new Draft({ a: 1 }, { a: 2 }).changed([])).toBe(false);
  });
});

test("an edit names its module", () => {
  const draft = new Draft({});
  draft.author = "first";
  draft.set(["a"], 1, { rule: "r", outcome: "applied", message: "m" });
  draft.author = "second";
  draft.set(["b"], 1, { rule: "r", outcome: "applied", message: "m" });
  draft.set(["c"], 1, undefined);
  expect(draft.edits.map(({ finding }) => finding?.module)).toEqual(["first", "second", undefined]);
});

test("an edit records the value before it and its provenance", () => {
  const old = { a: [1] };
  const draft = new Draft({ a: [1], b: { c: 2 } }, old);
  expect(draft.old).toBe(old);
  draft.set(["a"], [1, 2], undefined, { adds: [2] });
  draft.remove(["b", "c"], undefined);
  draft.set(["d", "e"], 1, undefined);
  expect(draft.edits.map(({ previous, provenance }) => [previous, provenance])).toEqual([
    [[1], { adds: [2] }],
    [2, undefined],
    [undefined, undefined],
  ]);
  expect(new Draft({}).old).toBeUndefined();
});
