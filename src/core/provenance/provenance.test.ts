import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { controlledBy } from "../../../test/builders/pod.ts";
import {
  CLAIM_ZONE,
  DISK,
  ETCD,
  finding,
  note,
  object,
  SHOP,
  same,
  TOLERATIONS,
  ZONE,
} from "../../../test/builders/provenance.ts";
import { Draft } from "../decision/draft.ts";
import type { ModuleFinding } from "../decision/finding.ts";
import { isObject, type Json, type JsonObject, stringAt } from "../json.ts";
import { PROVENANCE, provenanceOf } from "./annotation.ts";
import { ANNOTATIONS_LIMIT, writeProvenance } from "./provenance.ts";

describe("on CREATE", () => {
  test("records which policy set and added what", () => {
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
          added: { "/spec/tolerations": [{ key: "b" }, { key: "a" }] },
        },
      ],
    });
  });

  test("the entry of a module with a separate call stays, if it is valid", () => {
    const claims = { ...CLAIM_ZONE, other: CLAIM_ZONE.placement };
    const draft = new Draft(object(claims, { nodeSelector: { zone: "a" } }));
    expect(writeProvenance(draft, [], undefined, (module) => module === "placement")).toBe(true);
    expect(Object.keys(note(draft) ?? {})).toEqual(["placement"]);
    const without = new Draft(object(CLAIM_ZONE, {}));
    writeProvenance(without, [], undefined, () => true);
    expect(note(without)).toBeUndefined();
  });

  test("an edit without a policy is not recorded", () => {
    const draft = new Draft(object(undefined));
    draft.set(ZONE, "a", undefined);
    draft.set(DISK, "b", { rule: "r", outcome: "applied", message: "m" });
    expect(writeProvenance(draft, [], undefined)).toBe(true);
    expect(note(draft)).toBeUndefined();
  });

  test("of two policies that set one path the last one is recorded; a removed value is not", () => {
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

  test("a list that was set whole is recorded by the policy's elements", () => {
    const draft = new Draft(object(undefined, { terms: [{ l: ["own"] }] }));
    draft.author = "placement";
    const terms = [{ l: ["own", "a"] }, { l: ["own", "b"] }];
    draft.set(["spec", "terms"], terms, finding(ETCD), { adds: [{ l: ["a"] }, { l: ["b"] }] });
    writeProvenance(draft, [], undefined);
    expect(provenanceOf(draft.object)).toMatchObject([
      {
        policy: "ClusterPodSchedulingPolicy/etcd",
        set: [],
        added: { "/spec/terms": [{ l: ["a"] }, { l: ["b"] }] },
      },
    ]);
  });

  test("alternatives of a policy stay together if a later policy removes one of them", () => {
    const draft = new Draft(object(undefined, {}));
    draft.author = "placement";
    const both = [{ l: ["a"] }, { l: ["b"] }];
    draft.set(["spec", "terms"], both, finding(ETCD), { adds: both });
    draft.set(["spec", "terms"], [{ l: ["b", "c"] }], finding(SHOP), { adds: [{ l: ["c"] }] });
    writeProvenance(draft, [], undefined);
    expect(provenanceOf(draft.object)).toMatchObject([
      { added: { "/spec/terms": [{ l: ["a"] }, { l: ["b"] }] } },
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
    const draft = new Draft(object(claim, { tolerations: [{ key: "a" }, { key: "b" }, { l: [1, 2] }] }));
    const said = same("placement", ETCD, TOLERATIONS);
    writeProvenance(draft, [elements === undefined ? said : { ...said, elements }], undefined);
    expect(provenanceOf(draft.object)[0]?.added).toEqual(
      kept === undefined ? undefined : { "/spec/tolerations": kept },
    );
  });

  test("is independent of the order of the policies", () => {
    const edits = [
      (draft: Draft) => draft.set(ZONE, "a", finding(ETCD)),
      (draft: Draft) => draft.set(DISK, "b", finding(SHOP)),
      (draft: Draft) => {
        draft.append(TOLERATIONS, { key: "x", effect: "y" }, finding(SHOP));
        draft.append(TOLERATIONS, { key: "c" }, finding(SHOP));
      },
      (draft: Draft) => draft.append(TOLERATIONS, { effect: "a", key: "z" }, finding(ETCD)),
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

  test("a claim that no policy confirms is removed", () => {
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

  test("a forged claim is overwritten", () => {
    const forged = { placement: [{ policy: "K/forged", set: ["/spec/nodeSelector/disk"] }] };
    const draft = new Draft(object(forged, { nodeSelector: { disk: "b" } }));
    draft.author = "placement";
    draft.set(ZONE, "a", finding(ETCD));
    writeProvenance(draft, [], undefined);
    expect(JSON.stringify(note(draft))).not.toContain("forged");
    expect(note(draft)).toHaveProperty("placement.0.set", ["/spec/nodeSelector/zone"]);
  });

  test("a policy that only finds its value present records nothing", () => {
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

  test("unless usher changes the object: then the entries must be valid", () => {
    const draft = new Draft(copy());
    draft.author = "placement";
    draft.set(DISK, "b", finding(SHOP));
    writeProvenance(draft, [], undefined);
    expect(note(draft)).toEqual({
      placement: [{ policy: "PodSchedulingPolicy/shop/web", set: ["/spec/nodeSelector/disk"] }],
    });
  });
});

describe("the size of all annotations", () => {
  const claim = { placement: [{ policy: "K/forged", set: ["/a"] }] };

  /** An object whose other annotations leave room for a provenance of exactly `room` bytes. */
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

  test("allows an annotation that just fits", () => {
    const draft = edited(filled(EXACT));
    expect(writeProvenance(draft, [], undefined)).toBe(true);
    expect(note(draft)).toBeDefined();
  });

  test("omits the annotation if it is one byte too long, and keeps the edit", () => {
    const draft = edited(filled(EXACT - 1));
    expect(writeProvenance(draft, [], undefined)).toBe(false);
    expect(note(draft)).toBeUndefined();
    expect(draft.get(...ZONE)).toBe("a");
  });

  test("counts bytes, not characters", () => {
    const one = { metadata: { annotations: { a: "é".repeat(ANNOTATIONS_LIMIT / 2 - 50) } }, spec: {} };
    expect(writeProvenance(edited(one), [], undefined)).toBe(false);
  });

  test("if the annotation does not fit, a forged one does not stay in its place", () => {
    const draft = edited(filled(EXACT - 1, claim));
    expect(writeProvenance(draft, [], undefined)).toBe(false);
    expect(note(draft)).toBeUndefined();
  });
});

test("annotations that are not an object are reported", () => {
  const draft = new Draft({ metadata: { annotations: "x" }, spec: {} });
  draft.author = "placement";
  draft.set(ZONE, "a", finding(ETCD));
  expect(writeProvenance(draft, [], undefined)).toBe(false);
});
