import fc from "fast-check";
import { applyPatch, type Operation } from "rfc6902";
import { describe, expect, test } from "vitest";
import { again, jsonObjectWith, jsonWith } from "../../../test/builders/json.ts";
import type { Json, JsonObject } from "../json.ts";
import { equal } from "../json.ts";
import type { Path } from "../path.ts";
import { Draft } from "./draft.ts";
import { leaveChange, type PatchOperation, patchOf } from "./patch.ts";

// The reference library steps over `__proto__`, `constructor` and `prototype` on purpose, so these are tried apart.
const key = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom("a", "b", "c") },
  { weight: 1, arbitrary: fc.constantFrom("", "~", "/", "~1", "a/b~c", "0", "-", "toString") },
);
const path = fc.array(
  fc.oneof({ weight: 3, arbitrary: key }, { weight: 1, arbitrary: fc.integer({ min: -1, max: 2 }) }),
  { maxLength: 4 },
);

type Step = readonly ["set" | "append" | "remove" | "undo", Path, Json];
const step: fc.Arbitrary<Step> = fc.tuple(
  fc.constantFrom("set", "append", "remove", "set", "append", "remove", "undo"),
  path,
  jsonWith(key),
);

function take(draft: Draft, [what, where, value]: Step): void {
  if (what === "set") draft.set(where, value, undefined);
  else if (what === "append") draft.append(where, value, undefined);
  else if (what === "remove") draft.remove(where, undefined);
  else draft.undo(Math.floor(draft.mark() / 2));
}

function applied(original: JsonObject, patch: readonly PatchOperation[]): Json {
  const target = again(original);
  // Through text, as on the wire.
  const operations = JSON.parse(JSON.stringify(patch)) as Operation[];
  for (const error of applyPatch(target, operations)) expect(error).toBeNull();
  return target;
}

test("the patch turns the sent object into the draft, for any edits", () => {
  fc.assert(
    fc.property(jsonObjectWith(key), fc.array(step, { maxLength: 10 }), (object, steps) => {
      const draft = new Draft(again(object));
      for (const one of steps) take(draft, one);
      const result = applied(object, patchOf(draft));
      expect(result).toEqual(draft.object);
      expect(equal(result, draft.object)).toBe(true);
      if (equal(object, draft.object)) expect(patchOf(draft)).toEqual([]);
    }),
    { numRuns: 1_500 },
  );
});

const set = (where: Path, value: Json) => (draft: Draft) => draft.set(where, value, undefined);
const append = (where: Path, value: Json) => (draft: Draft) => draft.append(where, value, undefined);
const remove = (where: Path) => (draft: Draft) => draft.remove(where, undefined);

test.each<[string, JsonObject, ((draft: Draft) => boolean)[], PatchOperation[]]>([
  ["nothing", { a: 1 }, [], []],
  ["a new key", {}, [set(["a"], 1)], [{ op: "add", path: "/a", value: 1 }]],
  ["another value", { a: 1 }, [set(["a"], 2)], [{ op: "replace", path: "/a", value: 2 }]],
  [
    "missing parents come with the value",
    {},
    [set(["a", "b"], 1), set(["a", "c"], 2)],
    [{ op: "add", path: "/a", value: { b: 1, c: 2 } }],
  ],
  ["a null parent", { a: null }, [set(["a", "b"], 1)], [{ op: "replace", path: "/a", value: { b: 1 } }]],
  [
    "a null element is replaced: an add would move it",
    { a: [null, 1] },
    [set(["a", 0], 2)],
    [{ op: "replace", path: "/a/0", value: 2 }],
  ],
  [
    "null that was set and taken out",
    { a: null },
    [set(["a"], 1), remove(["a"])],
    [{ op: "remove", path: "/a" }],
  ],
  ["set and taken out", {}, [set(["a"], 1), remove(["a"])], []],
  ["taken out and set", { a: 1 }, [remove(["a"]), set(["a"], 2)], [{ op: "replace", path: "/a", value: 2 }]],
  ["taken out", { a: 1 }, [remove(["a"])], [{ op: "remove", path: "/a" }]],
  ["taken out and put back", { a: 1 }, [remove(["a"]), set(["a"], 1)], []],
  ["changed and changed back", { a: { b: [1], c: 2 } }, [set(["a"], 5), set(["a"], { c: 2, b: [1] })], []],
  ["the same again", { a: "x" }, [set(["a"], "x")], []],
  ["null for null", { a: null }, [set(["a"], 1), set(["a"], null)], []],
  [
    "null is not nothing",
    { a: null },
    [remove(["a"]), set(["a"], {})],
    [{ op: "replace", path: "/a", value: {} }],
  ],
  [
    "taken out piece by piece with its parent, and put back",
    { a: { b: { c: 1, d: 2 } } },
    [
      remove(["a", "b", "c"]),
      remove(["a", "b", "d"]),
      remove(["a", "b"]),
      remove(["a"]),
      set(["a", "b", "d"], 2),
      set(["a", "b", "c"], 1),
    ],
    [],
  ],
  [
    "the same, but for one of them",
    { a: { b: { c: 1, d: 2 } } },
    [remove(["a", "b", "c"]), remove(["a", "b", "d"]), remove(["a", "b"]), set(["a", "b", "d"], 2)],
    [{ op: "replace", path: "/a/b", value: { d: 2 } }],
  ],
  [
    "a list made shorter, and as long again",
    { a: [1, 2, 3] },
    [append(["a"], 4), set(["a"], [1]), append(["a"], 2), append(["a"], 3)],
    [],
  ],
  [
    "a list that had gained something before",
    { a: [1, 2] },
    [append(["a"], 3), set(["a"], [1]), append(["a"], 2), append(["a"], 3)],
    [{ op: "replace", path: "/a", value: [1, 2, 3] }],
  ],
  [
    "the last of several",
    { a: 1 },
    [set(["a"], 2), set(["a"], 3)],
    [{ op: "replace", path: "/a", value: 3 }],
  ],
  [
    "elements in order",
    { a: [0] },
    [append(["a"], 1), append(["a"], 2)],
    [
      { op: "add", path: "/a/-", value: 1 },
      { op: "add", path: "/a/-", value: 2 },
    ],
  ],
  [
    "elements of a created list",
    {},
    [append(["a", "b"], 1), append(["a", "b"], 2)],
    [{ op: "add", path: "/a", value: { b: [1, 2] } }],
  ],
  [
    "an element that was changed after",
    { a: [0] },
    [append(["a"], { x: 1 }), set(["a", 1, "y"], 2)],
    [{ op: "add", path: "/a/-", value: { x: 1, y: 2 } }],
  ],
  [
    "an edit inside a path that is written anyway",
    { a: { b: 1, c: [1] } },
    [set(["a", "b"], 2), append(["a", "c"], 2), set(["a"], 9)],
    [{ op: "replace", path: "/a", value: 9 }],
  ],
  [
    "keys that need escaping",
    { metadata: { annotations: {} } },
    [set(["metadata", "annotations", "usher.dev/x~y"], "1")],
    [{ op: "add", path: "/metadata/annotations/usher.dev~1x~0y", value: "1" }],
  ],
  [
    "__proto__",
    JSON.parse('{"__proto__": {"a": 1}}'),
    [set(["__proto__", "a"], 2)],
    [{ op: "replace", path: "/__proto__/a", value: 2 }],
  ],
  ["constructor", {}, [set(["constructor"], 1)], [{ op: "add", path: "/constructor", value: 1 }]],
])("the patch for edits: %s", (_what, object, edits, expected) => {
  const draft = new Draft(object);
  for (const edit of edits) expect(edit(draft)).toBe(true);
  expect(patchOf(draft)).toEqual(expected);
});

describe("unknown fields", () => {
  test("is not in the patch and not moved in the object", () => {
    const sent = {
      spec: {
        schedulingGates: [{ name: "wait" }],
        invented: { deeper: [1, { two: null }] },
        nodeSelector: { a: "1" },
      },
    };
    const before = JSON.stringify(sent.spec.invented);
    const { invented, schedulingGates } = sent.spec;
    const draft = new Draft(sent);
    draft.set(["spec", "nodeSelector", "b"], "2", undefined);
    expect(patchOf(draft)).toEqual([{ op: "add", path: "/spec/nodeSelector/b", value: "2" }]);
    expect(draft.get("spec", "invented")).toBe(invented);
    expect(draft.get("spec", "schedulingGates")).toBe(schedulingGates);
    expect(JSON.stringify(invented)).toBe(before);
  });
});

describe("edits between two marks", () => {
  const set = (draft: Draft, where: Path, value: Json) => draft.set(where, value, undefined);

  test.each<[string, boolean, (draft: Draft) => void]>([
    ["none", false, () => undefined],
    ["one that adds", true, (draft) => set(draft, ["b"], 1)],
    ["one that replaces", true, (draft) => set(draft, ["a"], 2)],
    ["one that writes the existing value", false, (draft) => set(draft, ["a"], 1)],
    [
      "an addition that is removed again",
      false,
      (draft) => {
        set(draft, ["b"], 1);
        draft.remove(["b"], undefined);
      },
    ],
    [
      "a replacement that is taken back",
      false,
      (draft) => {
        set(draft, ["a"], 2);
        set(draft, ["a"], 1);
      },
    ],
    [
      "one that cancels out and one that does not",
      true,
      (draft) => {
        set(draft, ["a"], 1);
        set(draft, ["b"], 1);
      },
    ],
  ])("%s: change %s", (_, changed, edit) => {
    const draft = new Draft({ a: 1 });
    // An earlier hook's edit of the same path is not counted.
    set(draft, ["a"], 0);
    set(draft, ["a"], 1);
    const from = draft.mark();
    edit(draft);
    expect(leaveChange(draft, from, draft.mark())).toBe(changed);
  });
});
