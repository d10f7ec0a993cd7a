import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { object } from "../../../test/builders/provenance.ts";
import type { Json, JsonObject } from "../json.ts";
import { asStored, digestOf, PROVENANCE, provenanceOf } from "./annotation.ts";

describe("reading", () => {
  test.each<[string, Json]>([
    ["no JSON", "{"],
    ["empty", ""],
    ["null", "null"],
    ["a list", "[]"],
    ["a number", "17"],
    ["a module that is not a list", { placement: { policy: "x" } }],
    ["entries that are nothing", { placement: [null, 1, "x", [], {}] }],
    ["an entry without a policy", { placement: [{ set: ["/a"] }] }],
    ["__proto__ as a module", '{"__proto__": [{"policy": "x", "set": ["/a"]}]}'],
    ["a module that is not a DNS label", { "Not A Label": [{ policy: "x", set: ["/a"] }] }],
  ])("%s is not provenance", (_what, text) => {
    expect(provenanceOf(object(text))).toEqual([]);
  });

  test.each<[string, JsonObject | undefined]>([
    ["nothing", undefined],
    ["no metadata", {}],
    ["metadata a text", { metadata: "x" }],
    ["annotations a list", { metadata: { annotations: [PROVENANCE] } }],
    [
      "an annotation that is not a string",
      { metadata: { annotations: { [PROVENANCE]: { placement: [] } } } },
    ],
  ])("%s has none", (_what, one) => {
    expect(provenanceOf(one)).toEqual([]);
  });

  test("reads the valid parts of an entry", () => {
    const text =
      '{"pod-os2":[{"policy":"K/p","uid":7,"generation":"x","set":["/a",1,null,"b",""],"added":{"/l":[1],"x":[2],"/m":3,"__proto__":[4]}}]}';
    expect(provenanceOf(object(text))).toEqual([
      { module: "pod-os2", policy: "K/p", set: ["/a"], added: { "/l": [1] } },
    ]);
  });

  test("ignores a value that is deeper than any policy could add", () => {
    const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
    const [origin] = provenanceOf(object(`{"placement":[{"policy":"K/p","added":{"/l":[1,${deep}]}}]}`));
    expect(origin?.added).toEqual({ "/l": [1] });
  });

  test("reads any string without harm", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        expect(Array.isArray(provenanceOf(object(text)))).toBe(true);
      }),
    );
  });
});

test("reads a limited part of an oversized annotation", () => {
  const one = { policy: "K/p", set: Array.from({ length: 5_000 }, (_, i) => `/a/${i}`) };
  const [origin, ...more] = provenanceOf(object(JSON.stringify({ placement: [one, one] })));
  expect(origin?.set).toHaveLength(1_024);
  expect(more).toEqual([]);
  const many = Array.from({ length: 5_000 }, (_, i) => ({ policy: `K/p${i}`, added: { "/l": [i] } }));
  expect(provenanceOf(object(JSON.stringify({ placement: many })))).toHaveLength(128);
});

test("a policy, a path and an element count once, however often the annotation names them", () => {
  const entry = {
    policy: "K/p",
    set: ["/a", "/a"],
    added: {
      "/l": [
        { a: 1, b: 2 },
        { b: 2, a: 1 },
      ],
    },
  };
  const other = { policy: "K/p", uid: "u", generation: 2, set: ["/a", "/b"], added: { "/l": [1] } };
  expect(provenanceOf(object(JSON.stringify({ placement: [entry, entry, other] })))).toEqual([
    {
      module: "placement",
      policy: "K/p",
      uid: "u",
      generation: 2,
      set: ["/a", "/b"],
      added: { "/l": [{ a: 1, b: 2 }, 1] },
    },
  ]);
});

test("ignores a path longer than any that usher writes", () => {
  const entry = { policy: "K/p", set: [`/${"a".repeat(1_023)}`, `/${"a".repeat(1_024)}`] };
  expect(provenanceOf(object(JSON.stringify({ placement: [entry] })))[0]?.set).toHaveLength(1);
});

test.each<[string, Json, Json]>([
  ["an empty list of a term", [{ matchExpressions: [] }, { matchFields: [] }], [{}, {}]],
  ["a null member", { a: null, b: [{ c: null }] }, { b: [{}] }],
  ["an empty object, which has a meaning", { labelSelector: {} }, { labelSelector: {} }],
])("%s is recorded as the API server stores it", (_what, sent, stored) => {
  expect(asStored(sent)).toEqual(stored);
  expect(digestOf(sent)).toBe(digestOf(stored));
});
