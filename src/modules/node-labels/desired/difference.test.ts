import { describe, expect, it } from "vitest";
import { indexWith, node, owned, patched, patchFor, rule } from "../../../../test/builders/node.ts";
import { KEY, NOW, set } from "../../../../test/builders/node-reconcile.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import { RECORD } from "../ledger/record.ts";
import { graceLeft } from "../rules/ownership.ts";

describe("annotations and taints of rules", () => {
  const spec = {
    nodeNamePatterns: ["w-0"],
    annotations: { "example.com/site": "north" },
    taints: [{ key: "dedicated", value: "edge", effect: "NoSchedule" }],
  };
  const others = { key: "other", effect: "NoExecute", timeAdded: "2026-01-01T00:00:00Z" };
  const start = node("w-0", {}, { metadata: { annotations: { mine: "1" } }, spec: { taints: [others] } });

  it("are added and removed with their rule, and those of other writers stay", () => {
    const with_ = patched(start, indexWith([rule("r", spec)]));
    expect(at(with_, "metadata", "annotations", "example.com/site")).toBe("north");
    expect(at(with_, "spec", "taints")).toEqual([
      others,
      { key: "dedicated", value: "edge", effect: "NoSchedule" },
    ]);
    expect(patched(with_, indexWith([]))).toEqual(start);
  });

  it("are changed with their rule", () => {
    const first = patched(start, indexWith([rule("r", spec)]));
    const changed = {
      ...spec,
      annotations: {},
      taints: [{ key: "dedicated", value: "core", effect: "NoSchedule" }],
    };
    const second = patched(first, indexWith([rule("r", changed)]));
    expect(at(second, "metadata", "annotations", "example.com/site")).toBeUndefined();
    expect(at(second, "spec", "taints", 1)).toMatchObject({ value: "core" });
  });

  it("that existed before the rule stay when it is deleted", () => {
    const had = node(
      "w-0",
      {},
      {
        metadata: { annotations: { "example.com/site": "north" } },
        spec: { taints: [{ key: "dedicated", value: "edge", effect: "NoSchedule" }] },
      },
    );
    expect(patched(patched(had, indexWith([rule("r", spec)])), indexWith([]))).toEqual(had);
  });

  it("that another writer changed since stay", () => {
    const with_ = patched(node("w-0"), indexWith([rule("r", spec)]));
    const changed = {
      ...with_,
      metadata: {
        ...(with_["metadata"] as JsonObject),
        annotations: { ...(at(with_, "metadata", "annotations") as JsonObject), "example.com/site": "south" },
      },
      spec: { taints: [{ key: "dedicated", value: "mine", effect: "NoSchedule" }] },
    };
    const after = patched(changed, indexWith([]));
    expect(at(after, "metadata", "annotations")).toEqual({ "example.com/site": "south" });
    expect(at(after, "spec", "taints", 0)).toMatchObject({ value: "mine" });
  });

  it("stay while their rule is invalid", () => {
    const with_ = patched(start, indexWith([rule("r", spec)]));
    expect(patchFor(with_, indexWith([rule("r", { ...spec, nodeNamePatterns: ["["] })]))).toEqual([]);
  });

  it("stay while another, invalid rule may set them", () => {
    const b = { ...spec, nodeNamePatterns: ["["] };
    const with_ = patched(start, indexWith([rule("a", spec), rule("b", b)]));
    expect(patchFor(with_, indexWith([rule("b", b)]))).toEqual([]);
    expect(patchFor(with_, indexWith([rule("b", { nodeNamePatterns: ["["] })]))).not.toEqual([]);
  });

  it.each<[string, JsonObject]>([
    ["a value", { taints: [{ key: "dedicated", value: "edge north", effect: "NoSchedule" }] }],
    ["an effect", { taints: [{ key: "dedicated", value: "edge", effect: "NoShedule" }] }],
    ["no effect", { taints: [{ key: "dedicated", value: "edge" }] }],
    ["no key", { taints: [{ value: "edge", effect: "NoSchedule" }] }],
    ["no list", { taints: "dedicated=edge:NoSchedule" }],
    ["a value of an annotation", { annotations: { "example.com/site": 7 } }],
    ["no map of annotations", { annotations: ["example.com/site"] }],
  ])("stay if their rule matches the node and is invalid: %s", (_what, wrong) => {
    const with_ = patched(start, indexWith([rule("r", spec)]));
    const after = patched(with_, indexWith([rule("r", { ...spec, ...wrong })]));
    expect(at(after, "spec", "taints")).toEqual(at(with_, "spec", "taints"));
    expect(at(after, "metadata", "annotations", "example.com/site")).toBe("north");
    expect(at(after, "metadata", "annotations", RECORD)).toEqual(
      at(with_, "metadata", "annotations", RECORD),
    );
    // A rule that names only other keys does not retain them.
    const other = { taints: [{ key: "x", value: "a b", effect: "NoSchedule" }], annotations: { "a.b/c": 1 } };
    const gone = patched(with_, indexWith([rule("r", { nodeNamePatterns: ["w-0"], ...other })]));
    expect(gone).toEqual(start);
  });

  it("a record that a kubelet forged removes no taint", () => {
    const record = JSON.stringify({
      taints: { "dedicated:NoSchedule": { rule: "default/r", value: "edge" } },
    });
    const taints = [{ key: "dedicated", value: "edge", effect: "NoSchedule" }];
    const forged = node("w-0", {}, { metadata: { annotations: { [RECORD]: record } }, spec: { taints } });
    // The ledger does not include the taint: only the record is removed.
    expect(patchFor(forged, indexWith([]), { now: NOW, ledger: { includes: () => false } })).toEqual([
      { op: "remove", path: "/metadata/annotations/usher.dev~1node-labels" },
    ]);
    // The ledger could not be read: nothing is done.
    expect(patchFor(forged, indexWith([]), { now: NOW, ledger: null })).toEqual([]);
  });
});

describe("the startup taint", () => {
  const starting = node(
    "w-0",
    {},
    { spec: { taints: [{ key: "usher.dev/starting", effect: "NoSchedule" }] } },
  );

  it("is removed in the write that labels the node", () => {
    const patch = patchFor(starting, indexWith([set("r", ["w-0"], { [KEY]: "1" })]));
    expect(patch.map(({ op, path }) => `${op} ${path}`)).toEqual([
      "add /metadata/labels/test.openshift.io~1foo1",
      "add /metadata/annotations",
      "remove /spec/taints",
    ]);
  });

  it("is removed if no rule matches", () => {
    expect(at(patched(starting, indexWith([])), "spec", "taints")).toBeUndefined();
  });

  it("has the key of the configuration", () => {
    const index = indexWith([], { startupTaint: "startup-taint.cluster-autoscaler.kubernetes.io/usher" });
    expect(patchFor(starting, index)).toEqual([]);
  });

  it("can't be set by a rule", () => {
    const index = indexWith([
      set("r", ["w-0"], {}, { taints: [{ key: "usher.dev/starting", effect: "NoSchedule" }] }),
    ]);
    expect(patchFor(node("w-0"), index)).toEqual([]);
  });
});

describe("the grace period", () => {
  const created = new Date(NOW).toISOString();
  const had = node("w-0", { [KEY]: "1" });

  it("starts when an OwnedLabels is created", () => {
    const index = indexWith([owned("o", { domain: "test.openshift.io" }, { creationTimestamp: created })]);
    expect(patchFor(had, index, { now: NOW + 59_000, firstSeen: NOW })).toEqual([]);
    expect(patchFor(had, index, { now: NOW + 60_000, firstSeen: NOW })).toHaveLength(1);
  });

  it("starts again when its spec changes", () => {
    const old = { creationTimestamp: "2020-01-01T00:00:00Z", generation: 2 };
    const index = indexWith([owned("o", { domain: "test.openshift.io" }, old)]);
    expect(patchFor(had, index, { now: NOW })).toEqual([]);
    expect(patchFor(had, index, { now: NOW + 59_000, firstSeen: NOW })).toEqual([]);
    expect(patchFor(had, index, { now: NOW + 60_000, firstSeen: NOW })).toHaveLength(1);
  });

  it("is not prolonged by a wall clock that was set back", () => {
    const index = indexWith([owned("o", { domain: "test.openshift.io" }, { creationTimestamp: created })]);
    const hoursAgo = NOW - 4 * 3_600_000;
    const left = (seenMs: number) =>
      [...index.ownerships].map((one) => graceLeft(one, seenMs, index.settings.graceMs, hoursAgo));
    expect([left(59_000), left(60_000)]).toEqual([[1_000], [0]]);
  });

  it("has the length of the configuration", () => {
    const index = indexWith([owned("o", { domain: "test.openshift.io" }, { creationTimestamp: created })], {
      gracePeriodSeconds: 1,
    });
    expect(patchFor(had, index, { now: NOW + 1_000, firstSeen: NOW })).toHaveLength(1);
  });
});
