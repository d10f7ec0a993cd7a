import { describe, expect, test } from "vitest";
import { ETCD, finding, note, object, SHOP, TOLERATIONS } from "../../../test/builders/provenance.ts";
import { Draft } from "../decision/draft.ts";
import { isObject, type Json, type JsonObject } from "../json.ts";
import { provenanceOf } from "./annotation.ts";
import { writeProvenance } from "./provenance.ts";

describe("on UPDATE", () => {
  const STORED = {
    placement: [
      {
        policy: "ClusterPodSchedulingPolicy/etcd",
        uid: "u1",
        set: ["/spec/nodeSelector/disk", "/spec/nodeSelector/zone"],
        added: { "/spec/tolerations": [{ key: "a" }, { key: "b" }] },
      },
    ],
  };
  const SPEC = { nodeSelector: { disk: "ssd", zone: "a" }, tolerations: [{ key: "a" }, { key: "b" }] };

  const written = (now: JsonObject, old: JsonObject) => {
    const draft = new Draft(now, old);
    expect(writeProvenance(draft, [], old)).toBe(true);
    return note(draft);
  };

  test("all valid entries stay, also if the request omitted them", () => {
    expect(written(object(undefined, SPEC), object(STORED, SPEC))).toEqual(STORED);
    expect(written(object(STORED, SPEC), object(STORED, SPEC))).toEqual(STORED);
  });

  test.each<[string, JsonObject, Json]>([
    [
      "one key changed",
      { ...SPEC, nodeSelector: { disk: "hdd", zone: "a" } },
      { set: ["/spec/nodeSelector/zone"] },
    ],
    ["one key removed", { ...SPEC, nodeSelector: { zone: "a" } }, { set: ["/spec/nodeSelector/zone"] }],
    [
      "one element removed",
      { ...SPEC, tolerations: [{ key: "b" }] },
      { added: { "/spec/tolerations": [{ key: "b" }] } },
    ],
    [
      "elements moved, and another between",
      { ...SPEC, tolerations: [{ key: "b" }, { key: "x" }, { key: "a" }] },
      {},
    ],
    ["the list removed", { nodeSelector: SPEC.nodeSelector }, { added: undefined }],
  ])("keeps what is still valid: %s", (_what, spec, expected) => {
    const [entry] = STORED.placement;
    expect(written(object(undefined, spec), object(STORED, SPEC))).toEqual({
      placement: [JSON.parse(JSON.stringify({ ...entry, ...(isObject(expected) ? expected : {}) }))],
    });
  });

  test("a term that others extended still has the policy's part; one that lost a part does not", () => {
    const stored = { placement: [{ policy: "K/p", added: { "/spec/terms": [{ l: ["a"] }, { l: ["b"] }] } }] };
    const old = object(stored, { terms: [{ l: ["own", "a"] }, { l: ["own", "b"] }] });
    const now = object(undefined, { terms: [{ l: ["own"] }, { f: ["more"], l: ["mine", "b"] }] });
    expect(written(now, old)).toEqual({
      placement: [{ policy: "K/p", added: { "/spec/terms": [{ l: ["b"] }] } }],
    });
  });

  test("a list that a policy sets whole replaces the elements that were recorded of the policy", () => {
    const stored = {
      placement: [{ policy: "PodSchedulingPolicy/shop/web", added: { "/spec/terms": [{ l: ["a"] }] } }],
    };
    const spec = { terms: [{ l: ["a"] }] };
    const draft = new Draft(object(undefined, spec), object(stored, spec));
    draft.author = "placement";
    draft.set(["spec", "terms"], [{ l: ["a", "b"] }], finding(SHOP), { adds: [{ l: ["b"] }] });
    writeProvenance(draft, [], object(stored, spec));
    expect(provenanceOf(draft.object)[0]?.added["/spec/terms"]).toEqual([{ l: ["b"] }]);
  });

  test("without valid entries the annotation is removed", () => {
    expect(written(object(STORED, {}), object(STORED, SPEC))).toBeUndefined();
  });

  test("a claim of the request that the stored object does not have is not trusted", () => {
    expect(written(object(STORED, SPEC), object(undefined, SPEC))).toBeUndefined();
  });

  test("a path with more values than are read is not kept", () => {
    const keys = (count: number) =>
      Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, "v"]));
    const spec = { small: keys(63), large: keys(20_000) };
    const stored = { placement: [{ policy: "K/p", set: ["/spec/large", "/spec/small"] }] };
    expect(written(object(undefined, spec), object(stored, spec))).toEqual({
      placement: [{ policy: "K/p", set: ["/spec/small"] }],
    });
  });

  test("places inside lists are found", () => {
    const stored = { placement: [{ policy: "K/p", set: ["/spec/containers/0/image"] }] };
    const spec = { containers: [{ image: "a" }] };
    expect(written(object(undefined, spec), object(stored, spec))).toEqual(stored);
    expect(written(object(undefined, { containers: [] }), object(stored, spec))).toBeUndefined();
  });

  test("an existing list keeps its elements' origin when others are added", () => {
    const old = object(undefined, {});
    const first = new Draft(old);
    first.author = "placement";
    first.append(TOLERATIONS, { key: "ours" }, finding(ETCD));
    writeProvenance(first, [], undefined);
    const now = object(undefined, { tolerations: [{ key: "theirs" }, { key: "ours" }] });
    expect(written(now, old)).toHaveProperty("placement.0.added", { "/spec/tolerations": [{ key: "ours" }] });
  });

  test.each<[string, Json]>([
    ["constructor as a module", { constructor: [{ policy: "K/p", set: ["/spec/x"] }] }],
    [
      "a deep value",
      `{"placement":[{"policy":"K/p","added":{"/spec/l":[${"[".repeat(20_000)}${"]".repeat(20_000)}]}}]}`,
    ],
    [
      "the same place ten thousand times",
      { placement: Array(10_000).fill({ policy: "K/p", set: ["/spec"] }) },
    ],
    [
      "ten thousand policies of one list",
      {
        placement: Array.from({ length: 5_000 }, (_, i) => ({ policy: `K/${i}`, added: { "/spec/l": [i] } })),
      },
    ],
  ])("forged stored annotations are harmless: %s", (_what, forged) => {
    const spec = { x: 1, l: Array.from({ length: 5_000 }, (_, i) => i) };
    const draft = new Draft(object(undefined, spec), object(forged, spec));
    expect(writeProvenance(draft, [], object(forged, spec))).toBe(true);
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
  });
});
