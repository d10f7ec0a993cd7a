import { describe, expect, test } from "vitest";
import { merged, mergedSpec, placementRequest, requiring, term } from "../../../../test/builders/merged.ts";
import { deployment, pod } from "../../../../test/builders/pod.ts";
import { at, type Json, type JsonObject } from "../../../core/json.ts";
import { provenanceOf } from "../../../core/provenance/annotation.ts";
import type { PlacementRequest } from "./context.ts";

const PLACE = [
  "affinity",
  "nodeAffinity",
  "requiredDuringSchedulingIgnoredDuringExecution",
  "nodeSelectorTerms",
];
const LIST = `/spec/${PLACE.join("/")}`;

const wants = (...terms: JsonObject[]) => placementRequest({ requiredNodeAffinity: terms });

/** A row: the pod, the policy, the result. Applying it again must change nothing. */
type Row = [
  string,
  own: JsonObject[] | undefined,
  wanted: JsonObject[],
  expected: Json[] | undefined,
  outcome: string,
];

describe("the terms", () => {
  test.each<Row>([
    ["into none", undefined, [term("zone=a")], [term("zone=a")], "applied"],
    ["the same", [term("zone=a")], [term("zone=a")], [term("zone=a")], "same"],
    // The original's tables, with the pod's requirements first.
    [
      "one and one: the pod's come first",
      [term("old=1", "@old")],
      [term("new=1", "@old")],
      [term("old=1", "new=1", "@old")],
      "applied",
    ],
    [
      "two and two, in the order of the pod's",
      [term("a=1", "b=1"), term("c=1")],
      [term("d=1"), term("e=1", "@f")],
      [
        term("a=1", "b=1", "d=1"),
        term("a=1", "b=1", "e=1", "@f"),
        term("c=1", "d=1"),
        term("c=1", "e=1", "@f"),
      ],
      "applied",
    ],
    [
      "common requirements, once",
      [term("zone=a", "disk=ssd")],
      [term("zone=a", "cpu")],
      [term("zone=a", "disk=ssd", "cpu")],
      "applied",
    ],
    [
      "values in another order are the same",
      [term("zone=a|b")],
      [term("zone=b|a", "cpu")],
      [term("zone=a|b", "cpu")],
      "applied",
    ],
    [
      "a term that has all of one of the policy's stays",
      [term("zone=a", "x"), term("y")],
      [term("zone=a"), term("zone=b")],
      [term("zone=a", "x"), term("y", "zone=a"), term("y", "zone=b")],
      "applied",
    ],
    [
      "equal combinations, once",
      [term("x"), term("x", "y")],
      [term("y", "z")],
      [term("x", "y", "z")],
      "applied",
    ],
    // Contradictions.
    ["a contradiction: the pod's stays", [term("zone=a")], [term("zone=b")], [term("zone=a")], "skipped"],
    [
      "a contradicting one is left out while another remains",
      [term("zone=a"), term("zone=b")],
      [term("zone=b")],
      [term("zone=b")],
      "applied",
    ],
    [
      "of the policy's as well",
      [term("zone=a")],
      [term("zone=b"), term("cpu")],
      [term("zone=a", "cpu")],
      "applied",
    ],
    ["two nodes", [term("@n1")], [term("@n2")], [term("@n1")], "skipped"],
    ["numbers", [term("cores>8")], [term("cores<4")], [term("cores>8")], "skipped"],
    // Terms that match no node.
    [
      "an empty one of the policy is ignored",
      [term("zone=a")],
      [{}, term("cpu")],
      [term("zone=a", "cpu")],
      "applied",
    ],
    ["an empty one of the policy into none", undefined, [{}, term("cpu")], [term("cpu")], "applied"],
    ["only empty ones of the policy", [term("zone=a")], [{}], [term("zone=a")], "skipped"],
    ["only empty ones of the policy into none", undefined, [{}], undefined, "skipped"],
    [
      "an empty one of the pod stays empty",
      [{}, term("zone=a")],
      [term("cpu")],
      [{}, term("zone=a", "cpu")],
      "applied",
    ],
    ["only empty ones of the pod: it gains nothing", [{}], [term("cpu")], [{}], "skipped"],
    ["no terms at all match nothing either", [], [term("cpu")], [], "skipped"],
    [
      "a self-contradicting one of the pod stays",
      [term("a", "!a"), term("b")],
      [term("cpu")],
      [term("a", "!a"), term("b", "cpu")],
      "applied",
    ],
  ])("%s", (_what, own, wanted, expected, outcome) => {
    const before = own === undefined ? {} : requiring(...own);
    const first = mergedSpec(before, [wants(...wanted)]);
    expect(at(first.spec, ...PLACE)).toEqual(expected);
    expect(first.findings.map((one) => one.outcome)).toEqual([outcome]);
    expect(merged(first.object, [wants(...wanted)]).patch).toEqual([]);
  });

  test("against the nodeSelector, of the pod or of a policy", () => {
    const { spec, findings } = mergedSpec({ nodeSelector: { zone: "a" } }, [wants(term("zone=b"))]);
    expect(spec).toEqual({ nodeSelector: { zone: "a" } });
    expect(findings[0]).toMatchObject({ outcome: "skipped", code: "USHER-P11", warn: 60 });
    const both = placementRequest({
      nodeSelector: [["zone", "a"]],
      requiredNodeAffinity: [term("zone=b"), term("zone=a")],
    });
    expect(mergedSpec({}, [both]).spec).toEqual({
      nodeSelector: { zone: "a" },
      ...requiring(term("zone=a")),
    });
  });

  test("a nodeSelector key with which no term is left is not added", () => {
    const own = requiring(term("zone=a"), term("zone=b"));
    const key = (value: string) =>
      placementRequest({
        nodeSelector: [
          ["zone", value],
          ["disk", "ssd"],
        ],
      });
    expect(mergedSpec(own, [key("b")]).spec).toEqual({ ...own, nodeSelector: { zone: "b", disk: "ssd" } });
    const { spec, findings } = mergedSpec(own, [key("c")]);
    expect(spec).toEqual({ ...own, nodeSelector: { disk: "ssd" } });
    expect(findings.at(-1)).toMatchObject({ outcome: "skipped", code: "USHER-P11" });
    // If no node could match before either, the key is not the cause.
    const never = requiring(term("a", "!a"));
    expect(mergedSpec(never, [key("c")]).spec["nodeSelector"]).toEqual({ zone: "c", disk: "ssd" });
  });

  test("the message names the owner of the other requirement", () => {
    const report = (own: JsonObject, ...requests: PlacementRequest[]) =>
      mergedSpec(own, requests).findings.at(-1)?.message;
    const theirs = placementRequest({ requiredNodeAffinity: [term("zone=a")] }, { name: "a" });
    expect(report(requiring(term("zone=a")), wants(term("zone=b")))).toBe(
      "required node affinity of policy p: no node can match it and the terms of the pod; skipped",
    );
    expect(report({}, theirs, wants(term("zone=b")))).toContain("the terms of policy a");
    expect(report({}, wants(term("zone=a|b", "@n1"), term("cpu!=x", "!gpu", "cores>4")))).toBe(
      "required node affinity zone in (a, b) and metadata.name=n1, or cpu!=x and no label gpu and cores>4",
    );
  });
});

describe("limits", () => {
  const many = (count: number, key: string) => Array.from({ length: count }, (_, i) => term(`${key}${i}=x`));

  test("128 terms are written, more are not", () => {
    const full = mergedSpec(requiring(...many(8, "own")), [wants(...many(16, "their"))]);
    expect(at(full.spec, ...PLACE)).toHaveLength(128);
    const { findings, patch } = mergedSpec(requiring(...many(10, "own")), [wants(...many(13, "their"))]);
    expect(patch).toEqual([]);
    expect(findings).toMatchObject([{ outcome: "failed", code: "USHER-P12", warn: 80 }]);
  });

  test("4,096 requirements are written, more are not", () => {
    const wide = (count: number) => term(...Array.from({ length: count }, (_, i) => `w${i}=x`));
    const terms = (count: number) => mergedSpec(requiring(...many(32, "own")), [wants(wide(count))]);
    expect(at(terms(127).spec, ...PLACE)).toHaveLength(32);
    expect(terms(128).patch).toEqual([]);
    expect(terms(128).findings).toMatchObject([{ outcome: "failed", code: "USHER-P12" }]);
    const alone = mergedSpec({}, [wants(wide(4_097))]);
    expect(alone.findings).toMatchObject([{ outcome: "failed", code: "USHER-P12" }]);
  });

  test("refused if the policy fails closed, but not when it is only restored", () => {
    const asked = (change: { restoring?: boolean }) =>
      mergedSpec(requiring(...many(10, "own")), [
        placementRequest({ requiredNodeAffinity: many(13, "their") }, { failure: "Fail", ...change }),
      ]).findings;
    expect(asked({})).toMatchObject([{ outcome: "violated", code: "USHER-P12" }]);
    expect(asked({ restoring: true })).toMatchObject([{ outcome: "failed" }]);
  });

  test("a pod with a hundred thousand terms is answered", () => {
    const own = Array.from({ length: 100_000 }, (_, i) => term(`o${i}=x`));
    expect(mergedSpec(requiring(...own), [wants(term("a"))]).findings).toMatchObject([{ code: "USHER-P12" }]);
  });
});

describe("a gated pod, which only accepts further requirements", () => {
  test.each<[string, own: JsonObject, wanted: JsonObject[], expected: JsonObject[] | undefined]>([
    ["a first affinity, of any terms", {}, [term("a"), term("b")], [term("a"), term("b")]],
    [
      "one more requirement for each term",
      requiring(term("x"), term("y")),
      [term("a")],
      [term("x", "a"), term("y", "a")],
    ],
    ["two terms would add terms", requiring(term("x")), [term("a"), term("b")], undefined],
    ["a contradiction would leave a term out", requiring(term("x"), term("!a")), [term("a")], undefined],
    ["of two terms one is impossible", requiring(term("!a")), [term("a"), term("b")], [term("!a", "b")]],
    [
      "equal combinations stay two terms",
      requiring(term("x", "y"), term("y", "x")),
      [term("a")],
      [term("x", "y", "a"), term("y", "x", "a")],
    ],
  ])("%s", (_what, own, wanted, expected) => {
    const { spec, findings } = mergedSpec(own, [wants(...wanted)], {
      limits: { immutable: {}, appendOnly: true },
    });
    expect(at(spec, ...PLACE)).toEqual(expected ?? at(own, ...PLACE));
    if (expected === undefined) expect(findings).toMatchObject([{ outcome: "skipped", code: "USHER-P13" }]);
  });

  test("skipped if it can't be written at all", () => {
    const limits = { immutable: { requiredNodeAffinity: "it is late" } };
    expect(mergedSpec({}, [wants(term("a"))], { limits })).toMatchObject({
      patch: [],
      findings: [{ code: "USHER-P13" }],
    });
    expect(mergedSpec(requiring(term("a")), [wants(term("a"))], { limits }).findings).toMatchObject([
      { outcome: "same" },
    ]);
    const back = placementRequest({ requiredNodeAffinity: [term("a")] }, { restoring: true });
    expect(at(mergedSpec({}, [back], { limits }).spec, ...PLACE)).toEqual([term("a")]);
  });
});

describe("provenance records", () => {
  const added = (own: JsonObject, ...wanted: JsonObject[]) =>
    provenanceOf(mergedSpec(own, [wants(...wanted)]).object)[0]?.added[LIST];

  test.each<[string, own: JsonObject, wanted: JsonObject[], noted: JsonObject[] | undefined]>([
    [
      "the policy's terms, not the product",
      requiring(term("x"), term("y")),
      [term("a"), term("b")],
      [term("a"), term("b")],
    ],
    [
      "a whole term, also if the pod has a part of it in each term",
      requiring(term("x", "y"), term("y", "z")),
      [term("y", "a")],
      [term("y", "a")],
    ],
    [
      "a term that was left out as well",
      requiring(term("!a")),
      [term("a"), term("b")],
      [term("a"), term("b")],
    ],
    ["nothing if it was present", requiring(term("a")), [term("a")], undefined],
  ])("%s", (_what, own, wanted, noted) => {
    expect(added(own, ...wanted)).toEqual(noted);
  });

  test("is kept when the same webhook is called again for one request", () => {
    const requests = [
      placementRequest({
        requiredNodeAffinity: [term("y", "a"), term("b")],
        tolerations: [{ key: "k", operator: "Exists" }],
      }),
    ];
    const first = mergedSpec(requiring(term("x", "y")), requests);
    const second = merged(first.object, requests);
    expect(second.patch).toEqual([]);
    expect(provenanceOf(second.object)).toEqual(provenanceOf(first.object));
    expect(provenanceOf(first.object)[0]?.added[LIST]).toEqual([term("y", "a"), term("b")]);
    // But not for a policy with another value.
    const other = merged(first.object, [placementRequest({ requiredNodeAffinity: [term("x")] })]);
    expect(provenanceOf(other.object)).toEqual([]);
  });
});

describe("hostile shapes get an answer, and no invalid patch", () => {
  const deep = JSON.parse(`${'{"a":'.repeat(1_000)}1${"}".repeat(1_000)}`);
  test.each<[string, Json]>([
    ["affinity a text", { affinity: "x" }],
    ["nodeAffinity a list", { affinity: { nodeAffinity: [] } }],
    [
      "required a number",
      { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: 1 } } },
    ],
    ["terms a text", requiring(...("x" as unknown as Json[]))],
    ["terms that are strings", requiring("x", 1, null)],
    ["requirements that are not a list", requiring({ matchExpressions: "x", matchFields: 7 })],
    ["requirements that can't be read", requiring({ matchExpressions: [null, 1, { key: [] }] })],
    ["a term far too deep", requiring(deep)],
    ["a nodeSelector that is a string", { nodeSelector: "zone=a" }],
  ])("%s", (_what, spec) => {
    for (const object of [pod({ spec }), deployment({ spec })]) {
      const where = object["kind"] === "Pod" ? ["spec"] : ["spec", "template", "spec"];
      const { patch, findings } = merged(object, [wants(term("zone=a"))], { spec: where });
      expect(patch).toEqual([]);
      expect(findings).toHaveLength(1);
      expect(["failed", "skipped"]).toContain(findings[0]?.outcome);
    }
  });

  test("null counts as absent", () => {
    for (const affinity of [
      null,
      { nodeAffinity: null },
      { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: null } },
    ]) {
      expect(at(mergedSpec({ affinity }, [wants(term("a"))]).spec, ...PLACE)).toEqual([term("a")]);
    }
  });
});
