import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { controlledBy } from "../../../test/builders/pod.ts";
import { Draft } from "../evaluate/draft.ts";
import type { Finding, ModuleFinding, PolicyRef } from "../evaluate/finding.ts";
import { isObject, type Json, type JsonObject, stringAt } from "../json.ts";
import type { Path } from "../path.ts";
import { PROVENANCE, provenanceOf } from "./origin.ts";
import { ANNOTATIONS_LIMIT, writeProvenance } from "./provenance.ts";

const ETCD: PolicyRef = { kind: "ClusterPodSchedulingPolicy", name: "etcd", uid: "u1", generation: 3 };
const SHOP: PolicyRef = { kind: "PodSchedulingPolicy", namespace: "shop", name: "web" };

const finding = (policy: PolicyRef, change: Partial<Finding> = {}): Finding => ({
  policy,
  rule: "nodeSelector",
  outcome: "applied",
  message: "m",
  ...change,
});

const ZONE: Path = ["spec", "nodeSelector", "zone"];
const DISK: Path = ["spec", "nodeSelector", "disk"];
const TOLERATIONS: Path = ["spec", "tolerations"];

/** An object whose annotation is this text or value, with a nodeSelector and tolerations. */
function object(note: Json | undefined, spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject {
  const text = note === undefined || typeof note === "string" ? note : JSON.stringify(note);
  return {
    metadata: {
      name: "web",
      ...(text === undefined ? {} : { annotations: { [PROVENANCE]: text } }),
      ...metadata,
    },
    spec,
  };
}

const note = (draft: Draft): Json | undefined => {
  const text = stringAt(draft.object, "metadata", "annotations", PROVENANCE);
  return text === undefined ? undefined : JSON.parse(text);
};

const same = (module: string, policy: PolicyRef, path: Path): ModuleFinding => ({
  module,
  ...finding(policy, { outcome: "same", path }),
});

const CLAIM_ZONE = {
  placement: [{ policy: "ClusterPodSchedulingPolicy/etcd", set: ["/spec/nodeSelector/zone"] }],
};

describe("reading", () => {
  test.each<[string, Json]>([
    ["no JSON", "{"],
    ["empty", ""],
    ["null", "null"],
    ["a list", "[]"],
    ["a number", "17"],
    ["a module that is no list", { placement: { policy: "x" } }],
    ["entries that are nothing", { placement: [null, 1, "x", [], {}] }],
    ["an entry without a policy", { placement: [{ set: ["/a"] }] }],
    ["__proto__ as a module", '{"__proto__": [{"policy": "x", "set": ["/a"]}]}'],
    ["a module that is no DNS label", { "Not A Label": [{ policy: "x", set: ["/a"] }] }],
  ])("%s is no provenance", (_what, text) => {
    expect(provenanceOf(object(text))).toEqual([]);
  });

  test.each<[string, JsonObject | undefined]>([
    ["nothing", undefined],
    ["no metadata", {}],
    ["metadata a text", { metadata: "x" }],
    ["annotations a list", { metadata: { annotations: [PROVENANCE] } }],
    ["an annotation that is no text", { metadata: { annotations: { [PROVENANCE]: { placement: [] } } } }],
  ])("%s has none", (_what, one) => {
    expect(provenanceOf(one)).toEqual([]);
  });

  test("takes what is readable of an entry", () => {
    const text =
      '{"pod-os2":[{"policy":"K/p","uid":7,"generation":"x","set":["/a",1,null,"b",""],"added":{"/l":[1],"x":[2],"/m":3,"__proto__":[4]}}]}';
    expect(provenanceOf(object(text))).toEqual([
      { module: "pod-os2", policy: "K/p", set: ["/a"], added: { "/l": [1] } },
    ]);
  });

  test("a value deeper than any policy could add is not ours", () => {
    const deep = `${"[".repeat(50_000)}${"]".repeat(50_000)}`;
    const [origin] = provenanceOf(object(`{"placement":[{"policy":"K/p","added":{"/l":[1,${deep}]}}]}`));
    expect(origin?.added).toEqual({ "/l": [1] });
  });

  test("any text at all is read without harm", () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (text) => {
        expect(Array.isArray(provenanceOf(object(text)))).toBe(true);
      }),
    );
  });
});

test("of a note that is longer than any that usher writes so much is read", () => {
  const one = { policy: "K/p", set: Array.from({ length: 5_000 }, (_, i) => `/a/${i}`) };
  const [origin, ...more] = provenanceOf(object(JSON.stringify({ placement: [one, one] })));
  expect(origin?.set).toHaveLength(1_024);
  expect(more).toEqual([]);
  const many = Array.from({ length: 5_000 }, (_, i) => ({ policy: `K/p${i}`, added: { "/l": [i] } }));
  expect(provenanceOf(object(JSON.stringify({ placement: many })))).toHaveLength(128);
});

describe("on CREATE", () => {
  test("says who set and who added what", () => {
    const draft = new Draft(object(undefined));
    draft.author = "placement";
    draft.set(ZONE, "a", finding(ETCD));
    draft.append(TOLERATIONS, { key: "b" }, finding(SHOP));
    draft.append(TOLERATIONS, { key: "a" }, finding(SHOP));
    draft.author = "other";
    draft.set(["metadata", "labels", "x/y"], "1", finding(ETCD));
    expect(writeProvenance(draft, [], undefined)).toBe(true);
    expect(note(draft)).toEqual({
      other: [
        {
          policy: "ClusterPodSchedulingPolicy/etcd",
          uid: "u1",
          generation: 3,
          set: ["/metadata/labels/x~1y"],
        },
      ],
      placement: [
        {
          policy: "ClusterPodSchedulingPolicy/etcd",
          uid: "u1",
          generation: 3,
          set: ["/spec/nodeSelector/zone"],
        },
        {
          policy: "PodSchedulingPolicy/shop/web",
          added: { "/spec/tolerations": [{ key: "a" }, { key: "b" }] },
        },
      ],
    });
  });

  test("an edit without a policy is nobody's", () => {
    const draft = new Draft(object(undefined));
    draft.set(ZONE, "a", undefined);
    draft.set(DISK, "b", { rule: "r", outcome: "applied", message: "m" });
    expect(writeProvenance(draft, [], undefined)).toBe(true);
    expect(note(draft)).toBeUndefined();
  });

  test("of two who set one place it is the last one's; what was taken out again is nobody's", () => {
    const draft = new Draft(object(undefined));
    draft.author = "placement";
    draft.set(ZONE, "a", finding(ETCD));
    draft.set(DISK, "ssd", finding(ETCD));
    draft.set(ZONE, "b", finding(SHOP));
    draft.remove(DISK, finding(SHOP));
    writeProvenance(draft, [], undefined);
    expect(note(draft)).toEqual({
      placement: [{ policy: "PodSchedulingPolicy/shop/web", set: ["/spec/nodeSelector/zone"] }],
    });
  });

  test("a list that was set whole is noted by the elements that it was set for", () => {
    const draft = new Draft(object(undefined, { terms: [{ l: ["own"] }] }));
    draft.author = "placement";
    const terms = [{ l: ["own", "a"] }, { l: ["own", "b"] }];
    draft.set(["spec", "terms"], terms, finding(ETCD), { elements: [{ l: ["a"] }, { l: ["b"] }], all: true });
    writeProvenance(draft, [], undefined);
    expect(provenanceOf(draft.object)).toMatchObject([
      {
        policy: "ClusterPodSchedulingPolicy/etcd",
        set: [],
        added: { "/spec/terms": [{ l: ["a"] }, { l: ["b"] }] },
      },
    ]);
  });

  test("what one that came later has left out of it again is nobody's", () => {
    const draft = new Draft(object(undefined, {}));
    draft.author = "placement";
    const both = [{ l: ["a"] }, { l: ["b"] }];
    draft.set(["spec", "terms"], both, finding(ETCD), { elements: both, all: true });
    draft.set(["spec", "terms"], [{ l: ["b", "c"] }], finding(SHOP), { elements: [{ l: ["c"] }], all: true });
    writeProvenance(draft, [], undefined);
    expect(provenanceOf(draft.object)).toMatchObject([
      { added: { "/spec/terms": [{ l: ["b"] }] } },
      { added: { "/spec/terms": [{ l: ["c"] }] } },
    ]);
  });

  test.each<[string, elements: Json[] | undefined, kept: Json[] | undefined]>([
    ["the same element", [{ key: "a" }], [{ key: "a" }]],
    ["an element that has more in a list", [{ key: "a" }, { l: [1, 2] }], [{ key: "a" }, { l: [1] }]],
    ["another element", [{ key: "b" }], undefined],
    ["no element", undefined, undefined],
  ])("a claim of elements confirmed by %s", (_what, elements, kept) => {
    const claim = {
      placement: [
        {
          policy: "ClusterPodSchedulingPolicy/etcd",
          added: { "/spec/tolerations": [{ key: "a" }, { l: [1] }] },
        },
      ],
    };
    const draft = new Draft(object(claim, { tolerations: [{ key: "a" }, { key: "b" }] }));
    const said = same("placement", ETCD, TOLERATIONS);
    writeProvenance(draft, [elements === undefined ? said : { ...said, elements }], undefined);
    expect(provenanceOf(draft.object)[0]?.added).toEqual(
      kept === undefined ? undefined : { "/spec/tolerations": kept },
    );
  });

  test("the same, whatever the order of the policies", () => {
    const edits = [
      (draft: Draft) => draft.set(ZONE, "a", finding(ETCD)),
      (draft: Draft) => draft.set(DISK, "b", finding(SHOP)),
      (draft: Draft) => draft.append(TOLERATIONS, { key: "x", effect: "y" }, finding(SHOP)),
      (draft: Draft) => draft.append(TOLERATIONS, { effect: "a", key: "z" }, finding(ETCD)),
      (draft: Draft) => draft.append(TOLERATIONS, { key: "c" }, finding(SHOP)),
    ];
    const text = (order: typeof edits) => {
      const draft = new Draft(object(undefined));
      draft.author = "placement";
      for (const edit of order) edit(draft);
      writeProvenance(draft, [], undefined);
      return stringAt(draft.object, "metadata", "annotations", PROVENANCE);
    };
    const expected = text(edits);
    expect(expected).toBeDefined();
    fc.assert(
      fc.property(fc.shuffledSubarray(edits, { minLength: edits.length }), (order) => {
        expect(text(order)).toBe(expected);
      }),
    );
  });

  test("a claim that no policy confirms is taken out", () => {
    const draft = new Draft(object(CLAIM_ZONE, { nodeSelector: { zone: "a" } }));
    expect(writeProvenance(draft, [], undefined)).toBe(true);
    expect(note(draft)).toBeUndefined();
  });

  test.each<[string, ModuleFinding, boolean]>([
    ["the same policy of the same place", same("placement", ETCD, ZONE), true],
    ["of another place", same("placement", ETCD, DISK), false],
    ["another policy", same("placement", SHOP, ZONE), false],
    ["another module", same("other", ETCD, ZONE), false],
    ["one that skipped it", { ...same("placement", ETCD, ZONE), outcome: "skipped" }, false],
  ])("a claim confirmed by %s: %s", (_what, confirmation, kept) => {
    const draft = new Draft(object(CLAIM_ZONE, { nodeSelector: { zone: "a" } }));
    writeProvenance(draft, [confirmation], undefined);
    expect(note(draft)).toEqual(
      kept
        ? {
            placement: [
              {
                policy: "ClusterPodSchedulingPolicy/etcd",
                uid: "u1",
                generation: 3,
                set: ["/spec/nodeSelector/zone"],
              },
            ],
          }
        : undefined,
    );
  });

  test("a forged claim is overwritten by what was done", () => {
    const forged = { placement: [{ policy: "K/forged", set: ["/spec/nodeSelector/disk"] }] };
    const draft = new Draft(object(forged, { nodeSelector: { disk: "b" } }));
    draft.author = "placement";
    draft.set(ZONE, "a", finding(ETCD));
    writeProvenance(draft, [], undefined);
    expect(JSON.stringify(note(draft))).not.toContain("forged");
    expect(note(draft)).toHaveProperty("placement.0.set", ["/spec/nodeSelector/zone"]);
  });

  test("a policy that only says that it is so already claims nothing", () => {
    const draft = new Draft(object(undefined, { nodeSelector: { zone: "a" } }));
    expect(writeProvenance(draft, [same("placement", ETCD, ZONE)], undefined)).toBe(true);
    expect(draft.edits).toEqual([]);
  });
});

describe("a controller's copy", () => {
  const owned = { ownerReferences: [controlledBy("apps/v1", "Deployment", "web")] };
  const copy = () => {
    const made = object(CLAIM_ZONE, { nodeSelector: { zone: "a" } });
    const metadata = isObject(made["metadata"]) ? made["metadata"] : {};
    return { ...made, metadata: { ...metadata, ...owned } };
  };

  test("is left as it is", () => {
    const draft = new Draft(copy());
    expect(writeProvenance(draft, [], undefined)).toBe(true);
    expect(note(draft)).toEqual(CLAIM_ZONE);
    expect(draft.edits).toEqual([]);
  });

  test("unless we change the object: then what is said must be true", () => {
    const draft = new Draft(copy());
    draft.author = "placement";
    draft.set(DISK, "b", finding(SHOP));
    writeProvenance(draft, [], undefined);
    expect(note(draft)).toEqual({
      placement: [{ policy: "PodSchedulingPolicy/shop/web", set: ["/spec/nodeSelector/disk"] }],
    });
  });
});

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

  test("all that is still true stays, also if the request left it out", () => {
    expect(written(object(undefined, SPEC), object(STORED, SPEC))).toEqual(STORED);
    expect(written(object(STORED, SPEC), object(STORED, SPEC))).toEqual(STORED);
  });

  test.each<[string, JsonObject, Json]>([
    [
      "one key changed",
      { ...SPEC, nodeSelector: { disk: "hdd", zone: "a" } },
      { set: ["/spec/nodeSelector/zone"] },
    ],
    ["one key gone", { ...SPEC, nodeSelector: { zone: "a" } }, { set: ["/spec/nodeSelector/zone"] }],
    [
      "one element gone",
      { ...SPEC, tolerations: [{ key: "b" }] },
      { added: { "/spec/tolerations": [{ key: "b" }] } },
    ],
    [
      "elements moved, and another between",
      { ...SPEC, tolerations: [{ key: "b" }, { key: "x" }, { key: "a" }] },
      {},
    ],
    ["the list gone", { nodeSelector: SPEC.nodeSelector }, { added: undefined }],
  ])("%s", (_what, spec, expected) => {
    const [entry] = STORED.placement;
    expect(written(object(undefined, spec), object(STORED, SPEC))).toEqual({
      placement: [JSON.parse(JSON.stringify({ ...entry, ...(isObject(expected) ? expected : {}) }))],
    });
  });

  test("a term to which others have added still carries ours; one that lost a part does not", () => {
    const stored = { placement: [{ policy: "K/p", added: { "/spec/terms": [{ l: ["a"] }, { l: ["b"] }] } }] };
    const old = object(stored, { terms: [{ l: ["own", "a"] }, { l: ["own", "b"] }] });
    const now = object(undefined, { terms: [{ l: ["own"] }, { f: ["more"], l: ["mine", "b"] }] });
    expect(written(now, old)).toEqual({
      placement: [{ policy: "K/p", added: { "/spec/terms": [{ l: ["b"] }] } }],
    });
  });

  test("all that a policy has in a list takes the place of what was noted, one more joins it", () => {
    const stored = {
      placement: [{ policy: "PodSchedulingPolicy/shop/web", added: { "/spec/terms": [{ l: ["a"] }] } }],
    };
    const spec = { terms: [{ l: ["a"] }] };
    const addedWith = (all: boolean) => {
      const draft = new Draft(object(undefined, spec), object(stored, spec));
      draft.author = "placement";
      draft.set(["spec", "terms"], [{ l: ["a", "b"] }], finding(SHOP), { elements: [{ l: ["b"] }], all });
      writeProvenance(draft, [], object(stored, spec));
      return provenanceOf(draft.object)[0]?.added["/spec/terms"];
    };
    expect(addedWith(true)).toEqual([{ l: ["b"] }]);
    expect(addedWith(false)).toEqual([{ l: ["a"] }, { l: ["b"] }]);
  });

  test("when nothing is true any more, nothing is said", () => {
    expect(written(object(STORED, {}), object(STORED, SPEC))).toBeUndefined();
  });

  test("what the request claims and the stored object does not is not believed", () => {
    expect(written(object(STORED, SPEC), object(undefined, SPEC))).toBeUndefined();
  });

  test("places inside lists are found", () => {
    const stored = { placement: [{ policy: "K/p", set: ["/spec/containers/0/image"] }] };
    const spec = { containers: [{ image: "a" }] };
    expect(written(object(undefined, spec), object(stored, spec))).toEqual(stored);
    expect(written(object(undefined, { containers: [] }), object(stored, spec))).toBeUndefined();
  });

  test("a list of long standing keeps its elements' origin when others join", () => {
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
  ])("stored notes that somebody forged do no harm: %s", (_what, forged) => {
    const spec = { x: 1, l: Array.from({ length: 5_000 }, (_, i) => i) };
    const draft = new Draft(object(undefined, spec), object(forged, spec));
    expect(writeProvenance(draft, [], object(forged, spec))).toBe(true);
    expect(Object.getPrototypeOf({})).toBe(Object.prototype);
  });
});

describe("the size of all annotations", () => {
  const claim = { placement: [{ policy: "K/forged", set: ["/a"] }] };

  /** An object with so much else in its annotations that a note of `room` bytes just fits. */
  const filled = (room: number, forged?: Json): JsonObject => {
    const padding = ANNOTATIONS_LIMIT - PROVENANCE.length - room - "filler".length;
    const text = forged === undefined ? {} : { [PROVENANCE]: JSON.stringify(forged) };
    return { metadata: { annotations: { filler: "x".repeat(padding), ...text } }, spec: {} };
  };
  const edited = (one: JsonObject): Draft => {
    const draft = new Draft(one);
    draft.author = "placement";
    draft.set(ZONE, "a", finding(SHOP));
    return draft;
  };
  const EXACT = JSON.stringify({
    placement: [{ policy: "PodSchedulingPolicy/shop/web", set: ["/spec/nodeSelector/zone"] }],
  }).length;

  test("just fits", () => {
    const draft = edited(filled(EXACT));
    expect(writeProvenance(draft, [], undefined)).toBe(true);
    expect(note(draft)).toBeDefined();
  });

  test("one byte too many: left out, and the edit stays", () => {
    const draft = edited(filled(EXACT - 1));
    expect(writeProvenance(draft, [], undefined)).toBe(false);
    expect(note(draft)).toBeUndefined();
    expect(draft.get(...ZONE)).toBe("a");
  });

  test("bytes count, not characters", () => {
    const one = { metadata: { annotations: { a: "é".repeat(ANNOTATIONS_LIMIT / 2 - 50) } }, spec: {} };
    expect(writeProvenance(edited(one), [], undefined)).toBe(false);
  });

  test("where the truth has no room, a forged note does not stay in its place", () => {
    const draft = edited(filled(EXACT - 1, claim));
    expect(writeProvenance(draft, [], undefined)).toBe(false);
    expect(note(draft)).toBeUndefined();
  });
});

test("annotations that are no object: said, not broken", () => {
  const draft = new Draft({ metadata: { annotations: "x" }, spec: {} });
  draft.author = "placement";
  draft.set(ZONE, "a", finding(ETCD));
  expect(writeProvenance(draft, [], undefined)).toBe(false);
});
