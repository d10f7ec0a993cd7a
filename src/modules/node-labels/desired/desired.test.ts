import fc from "fast-check";
import { describe, expect, it, test } from "vitest";
import { indexWith, node, owned, patched, patchFor, rule } from "../../../../test/builders/node.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import { labelsOf } from "../../../core/kubernetes/object.ts";
import { RECORD } from "../ledger/record.ts";

const KEY = "test.openshift.io/foo1";
const OWNED = owned("test", { domain: "test.openshift.io" });
const NOW = 1_700_000_000_000;

const set = (name: string, patterns: string[], labels: JsonObject, more: JsonObject = {}) =>
  rule(name, { nodeNamePatterns: patterns, labels, ...more });

function labelsAfter(policies: readonly JsonObject[], name: string, labels: JsonObject) {
  return labelsOf(patched(node(name, labels), indexWith(policies)));
}

describe("labels of a node, by all rules together", () => {
  it.each<[string, JsonObject[], string, JsonObject, JsonObject]>([
    ["a rule sets", [set("r", ["w-0"], { [KEY]: "bar1" })], "w-0", {}, { [KEY]: "bar1" }],
    ["it means another node", [set("r", ["w-0"], { [KEY]: "bar1" })], "w-0-x", {}, {}],
    [
      "a wrong value is repaired",
      [set("r", ["w-0"], { [KEY]: "bar1" })],
      "w-0",
      { [KEY]: "x" },
      { [KEY]: "bar1" },
    ],
    ["no rule, no ownership: stays", [], "w-0", { [KEY]: "bar1" }, { [KEY]: "bar1" }],
    ["no rule, owned: goes", [OWNED], "w-0", { [KEY]: "bar1" }, {}],
    [
      "owned and covered: stays",
      [OWNED, set("r", ["w-.*"], { [KEY]: "b" })],
      "w-0",
      { [KEY]: "b" },
      { [KEY]: "b" },
    ],
    [
      "a name that only contains the pattern is not covered",
      [OWNED, set("r", ["w-0"], { [KEY]: "b" })],
      "w-0-x",
      { [KEY]: "b" },
      {},
    ],
    ["an empty pattern covers nothing", [OWNED, set("r", [""], { [KEY]: "b" })], "w-0", { [KEY]: "b" }, {}],
    [
      "an invalid pattern covers every node",
      [OWNED, set("r", ["w-["], { [KEY]: "b" })],
      "x",
      { [KEY]: "c" },
      { [KEY]: "c" },
    ],
    [
      "the valid one beside it goes on",
      [OWNED, set("r", ["w-[", "w-0"], { [KEY]: "b" })],
      "w-0",
      {},
      { [KEY]: "b" },
    ],
    [
      "an invalid value covers its key",
      [OWNED, set("r", ["w-0"], { [KEY]: "a b" })],
      "w-0",
      { [KEY]: "c" },
      { [KEY]: "c" },
    ],
    [
      "an invalid selector covers every node",
      [
        OWNED,
        set(
          "r",
          ["w-0"],
          { [KEY]: "b" },
          { nodeSelector: { matchExpressions: [{ key: "a", operator: "In" }] } },
        ),
      ],
      "x",
      { [KEY]: "c" },
      { [KEY]: "c" },
    ],
    [
      "unreadable labels cover every key",
      [OWNED, rule("r", { nodeNamePatterns: ["w-0"], labels: "x" })],
      "w-0",
      { [KEY]: "c" },
      { [KEY]: "c" },
    ],
    [
      "a rule on its way out neither sets nor covers",
      [
        OWNED,
        rule(
          "r",
          { nodeNamePatterns: ["w-0"], labels: { [KEY]: "b" } },
          { deletionTimestamp: "2026-01-01T00:00:00Z" },
        ),
      ],
      "w-0",
      { [KEY]: "b" },
      {},
    ],
    [
      "a domain is not its subdomain",
      [OWNED],
      "w-0",
      { "a.test.openshift.io/x": "1", "test.openshift.io.b/x": "1" },
      { "a.test.openshift.io/x": "1", "test.openshift.io.b/x": "1" },
    ],
    [
      "a name pattern alone: any domain and none",
      [owned("o", { namePattern: "foo.*" })],
      "w-0",
      { "a.b/foo1": "", foo2: "", "a.b/xfoo": "" },
      { "a.b/xfoo": "" },
    ],
    [
      "but nothing of Kubernetes",
      [owned("o", { namePattern: ".*" })],
      "w-0",
      { "kubernetes.io/x": "", "foo.k8s.io/y": "", "node-role.kubernetes.io/worker": "", z: "" },
      { "kubernetes.io/x": "", "foo.k8s.io/y": "", "node-role.kubernetes.io/worker": "" },
    ],
    [
      "domain and pattern: both",
      [owned("o", { domain: "a.b", namePattern: "x|y" })],
      "w-0",
      { "a.b/x": "", "a.b/xx": "", "c.d/x": "" },
      { "a.b/xx": "", "c.d/x": "" },
    ],
    ["a key without a slash is in no domain", [OWNED], "w-0", { foo1: "" }, { foo1: "" }],
    [
      "protected keys are never removed",
      [
        owned(
          "o",
          { domain: "kubernetes.io" },
          { annotations: { "usher.dev/acknowledge": "kubernetes.io" } },
        ),
      ],
      "w-0",
      { "kubernetes.io/hostname": "w-0", "kubernetes.io/x": "" },
      { "kubernetes.io/hostname": "w-0" },
    ],
    ["an ownership of everything owns nothing", [owned("o", {})], "w-0", { "a.b/c": "" }, { "a.b/c": "" }],
    [
      "a protected key is not set",
      [set("r", ["w-0"], { "kubernetes.io/os": "bsd" })],
      "w-0",
      { "kubernetes.io/os": "linux" },
      { "kubernetes.io/os": "linux" },
    ],
    [
      "unless acknowledged",
      [
        rule(
          "r",
          { nodeNamePatterns: ["w-0"], labels: { "kubernetes.io/os": "bsd" } },
          { annotations: { "usher.dev/acknowledge": "kubernetes.io/os" } },
        ),
      ],
      "w-0",
      { "kubernetes.io/os": "linux" },
      { "kubernetes.io/os": "bsd" },
    ],
  ])("%s", (_what, policies, name, before, after) => {
    expect(labelsAfter(policies, name, before)).toEqual(after);
  });
});

describe("conflicts", () => {
  const a = set("a", ["w.*"], { [KEY]: "from-a" });
  const b = set("b", [".*-0"], { [KEY]: "from-b" });
  const strong = set("z", ["w-0"], { [KEY]: "from-z" }, { priority: 5 });
  const elsewhere = rule(
    "a",
    { nodeNamePatterns: ["w.*"], labels: { [KEY]: "other" } },
    { namespace: "aaa" },
  );

  it.each<[string, JsonObject[], string]>([
    ["the first by name", [a, b], "from-a"],
    ["whatever came first", [b, a], "from-a"],
    ["the higher priority", [a, b, strong], "from-z"],
    ["of one name, the first namespace", [a, elsewhere], "other"],
    ["the winner gone, the loser's value appears", [b], "from-b"],
  ])("%s", (_what, policies, value) => {
    expect(labelsAfter(policies, "w-0", { [KEY]: "from-a" })?.[KEY]).toBe(value);
  });
});

describe("nodes by labels", () => {
  const select = (labels: JsonObject, more: JsonObject = {}) =>
    rule("s", { nodeSelector: { matchLabels: labels }, labels: { "x.y/set": "1" }, ...more });

  it.each<[string, JsonObject[], JsonObject, boolean]>([
    ["its labels fit", [select({ rack: "7" })], { rack: "7" }, true],
    ["they do not", [select({ rack: "7" })], { rack: "8" }, false],
    ["both must fit", [select({ rack: "7" }, { nodeNamePatterns: ["other"] })], { rack: "7" }, false],
    [
      "what a rule sets is not seen",
      [select({ rack: "7" }), set("r", ["nobody"], { rack: "8" })],
      { rack: "7" },
      false,
    ],
    [
      "nor its absence mistaken",
      [
        rule("s", {
          nodeSelector: { matchExpressions: [{ key: "rack", operator: "DoesNotExist" }] },
          labels: { "x.y/set": "1" },
        }),
        set("r", ["nobody"], { rack: "8" }),
      ],
      { rack: "7" },
      true,
    ],
    [
      "patterns that can't be read do not widen it",
      [select({ rack: "7" }, { nodeNamePatterns: ["["] })],
      { rack: "7" },
      false,
    ],
  ])("%s", (_what, policies, labels, means) => {
    expect(labelsAfter(policies, "w-0", labels)?.["x.y/set"]).toBe(means ? "1" : undefined);
  });
});

describe("annotations and taints of rules", () => {
  const spec = {
    nodeNamePatterns: ["w-0"],
    annotations: { "example.com/site": "north" },
    taints: [{ key: "dedicated", value: "edge", effect: "NoSchedule" }],
  };
  const others = { key: "other", effect: "NoExecute", timeAdded: "2026-01-01T00:00:00Z" };
  const start = node("w-0", {}, { metadata: { annotations: { mine: "1" } }, spec: { taints: [others] } });

  it("come with it and go with it, and others' stay as they are", () => {
    const with_ = patched(start, indexWith([rule("r", spec)]));
    expect(at(with_, "metadata", "annotations", "example.com/site")).toBe("north");
    expect(at(with_, "spec", "taints")).toEqual([
      others,
      { key: "dedicated", value: "edge", effect: "NoSchedule" },
    ]);
    expect(patched(with_, indexWith([]))).toEqual(start);
  });

  it("are changed with it", () => {
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

  it("that were there before stay when it goes", () => {
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

  it("that someone changed since then are someone's", () => {
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

  it("stay while their rule can't be read", () => {
    const with_ = patched(start, indexWith([rule("r", spec)]));
    expect(patchFor(with_, indexWith([rule("r", { ...spec, nodeNamePatterns: ["["] })]))).toEqual([]);
  });

  it("stay while another rule that can't be read may want them, whoever set them", () => {
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
  ])("stay where their rule means the node and can't be read: %s", (_what, wrong) => {
    const with_ = patched(start, indexWith([rule("r", spec)]));
    const after = patched(with_, indexWith([rule("r", { ...spec, ...wrong })]));
    expect(at(after, "spec", "taints")).toEqual(at(with_, "spec", "taints"));
    expect(at(after, "metadata", "annotations", "example.com/site")).toBe("north");
    expect(at(after, "metadata", "annotations", RECORD)).toEqual(
      at(with_, "metadata", "annotations", RECORD),
    );
    // Where it names others alone, these go.
    const other = { taints: [{ key: "x", value: "a b", effect: "NoSchedule" }], annotations: { "a.b/c": 1 } };
    const gone = patched(with_, indexWith([rule("r", { nodeNamePatterns: ["w-0"], ...other })]));
    expect(gone).toEqual(start);
  });

  it("a note that a kubelet forged takes no taint off", () => {
    const record = JSON.stringify({
      taints: { "dedicated:NoSchedule": { rule: "default/r", value: "edge" } },
    });
    const taints = [{ key: "dedicated", value: "edge", effect: "NoSchedule" }];
    const forged = node("w-0", {}, { metadata: { annotations: { [RECORD]: record } }, spec: { taints } });
    // The ledger knows of no such taint: only the note goes.
    expect(patchFor(forged, indexWith([]), { now: NOW, ledger: { includes: () => false } })).toEqual([
      { op: "remove", path: "/metadata/annotations/usher.dev~1node-labels" },
    ]);
    // Nobody could read the ledger: nothing is done.
    expect(patchFor(forged, indexWith([]), { now: NOW, ledger: null })).toEqual([]);
  });
});

describe("the startup taint", () => {
  const starting = node(
    "w-0",
    {},
    { spec: { taints: [{ key: "usher.dev/starting", effect: "NoSchedule" }] } },
  );

  it("goes in the write that puts the node right", () => {
    const patch = patchFor(starting, indexWith([set("r", ["w-0"], { [KEY]: "1" })]));
    expect(patch.map(({ op, path }) => `${op} ${path}`)).toEqual([
      "add /metadata/labels/test.openshift.io~1foo1",
      "add /metadata/annotations",
      "remove /spec/taints",
    ]);
  });

  it("goes where no rule is", () => {
    expect(at(patched(starting, indexWith([])), "spec", "taints")).toBeUndefined();
  });

  it("goes, and all else stays, where the module is switched off", () => {
    const off = indexWith([set("r", ["w-0"], { [KEY]: "1" }), owned("o", { namePattern: ".*" })], {
      enabled: false,
    });
    const mine = { ...starting, metadata: { name: "w-0", labels: { x: "1" } } };
    expect(patched(mine, off)).toEqual(node("w-0", { x: "1" }, { spec: {} }));
  });

  it("has the key that the installation says", () => {
    const index = indexWith([], { startupTaint: "startup-taint.cluster-autoscaler.kubernetes.io/usher" });
    expect(patchFor(starting, index)).toEqual([]);
  });

  it("is no rule's to set", () => {
    const index = indexWith([
      set("r", ["w-0"], {}, { taints: [{ key: "usher.dev/starting", effect: "NoSchedule" }] }),
    ]);
    expect(patchFor(node("w-0"), index)).toEqual([]);
  });
});

describe("the grace period", () => {
  const created = new Date(NOW).toISOString();
  const had = node("w-0", { [KEY]: "1" });

  it("begins when an ownership appears", () => {
    const index = indexWith([owned("o", { domain: "test.openshift.io" }, { creationTimestamp: created })]);
    expect(patchFor(had, index, { now: NOW + 59_000, firstSeen: NOW })).toEqual([]);
    expect(patchFor(had, index, { now: NOW + 60_000, firstSeen: NOW })).toHaveLength(1);
  });

  it("begins anew when its spec has changed", () => {
    const old = { creationTimestamp: "2020-01-01T00:00:00Z", generation: 2 };
    const index = indexWith([owned("o", { domain: "test.openshift.io" }, old)]);
    expect(patchFor(had, index, { now: NOW })).toEqual([]);
    expect(patchFor(had, index, { now: NOW + 59_000, firstSeen: NOW })).toEqual([]);
    expect(patchFor(had, index, { now: NOW + 60_000, firstSeen: NOW })).toHaveLength(1);
  });

  it("is as long as the installation says", () => {
    const index = indexWith([owned("o", { domain: "test.openshift.io" }, { creationTimestamp: created })], {
      gracePeriodSeconds: 1,
    });
    expect(patchFor(had, index, { now: NOW + 1_000, firstSeen: NOW })).toHaveLength(1);
  });
});

it("rules of other namespaces do not count where they are confined to one", () => {
  const index = indexWith([set("r", ["w-0"], { [KEY]: "1" })], { namespace: "usher-rules" });
  expect(patchFor(node("w-0"), index)).toEqual([]);
});

it("more than a node can hold is left out, the last rules first", () => {
  const many = Array.from({ length: 2_000 }, (_, i) =>
    set(`r${String(i).padStart(4, "0")}`, [".*"], {
      [`${"d".repeat(60)}.example.com/k${i}`]: "v".repeat(63),
    }),
  );
  const after = patched(node("n"), indexWith(many));
  expect(Buffer.byteLength(JSON.stringify(after))).toBeLessThan(400_000);
  expect(Object.keys(labelsOf(after) ?? {})).toContain(`${"d".repeat(60)}.example.com/k0`);
  expect(patchFor(after, indexWith(many))).toEqual([]);
});

it("what has no room for the winner's value does not get the loser's", () => {
  const big = Array.from({ length: 40 }, (_, i) => [`example.com/k${i}`, "v".repeat(4_000)]);
  const index = indexWith([
    rule("a", { nodeNamePatterns: [".*"], annotations: Object.fromEntries(big) }, {}),
    rule("z", { nodeNamePatterns: [".*"], annotations: { "example.com/k39": "small" } }, {}),
  ]);
  expect(at(patched(node("n"), index), "metadata", "annotations", "example.com/k39")).toBeUndefined();
});

const NAMES = ["w-0", "w-1", "x"];
const KEYS = [
  KEY,
  "test.openshift.io/foo2",
  "node-role.kubernetes.io/edge",
  "plain",
  "kubernetes.io/os",
  "bad key",
];
const VALUES = ["a", "b", "not valid"];
const pick = <T>(from: readonly T[]) => fc.constantFrom(...from);
const anyMap = fc.dictionary(pick(KEYS), pick(VALUES), { maxKeys: 3 });
const anyTaints = fc.array(
  fc.record({
    key: pick(["dedicated", "gpu", "usher.dev/starting"]),
    value: pick(["", "a", "b"]),
    effect: pick(["NoSchedule", "NoExecute", "Bad"]),
  }),
  { maxLength: 2 },
);
const anyRule = fc
  .record({
    name: pick(["a", "b", "c", "d"]),
    spec: fc.record(
      {
        nodeNamePatterns: fc.array(pick(["w-.*", "w-0", "x|w-1", ".*", "[", ""]), { maxLength: 2 }),
        nodeSelector: fc.record({
          matchLabels: fc.dictionary(pick([KEY, "plain"]), pick(["a", "b"]), { maxKeys: 1 }),
        }),
        labels: anyMap,
        annotations: anyMap,
        taints: anyTaints,
        priority: fc.integer({ min: -1, max: 1 }),
        startupTaint: fc.boolean(),
      },
      { requiredKeys: ["labels"] },
    ),
  })
  .map(({ name, spec }) => rule(name, spec as JsonObject));
const anyOwned = fc
  .record(
    { domain: pick(["test.openshift.io", "kubernetes.io", ""]), namePattern: pick(["foo.*", "p.*", "("]) },
    { requiredKeys: [] },
  )
  .map((spec) => owned("o", spec as JsonObject));
const anyPolicies = fc.array(
  fc.oneof({ weight: 3, arbitrary: anyRule }, { weight: 1, arbitrary: anyOwned }),
  { maxLength: 6 },
);
const anyNode = fc
  .record({
    name: pick(NAMES),
    labels: fc.dictionary(pick(KEYS.slice(0, 5)), pick(["a", "b"]), { maxKeys: 4 }),
    taints: fc.uniqueArray(
      fc.record({
        key: pick(["dedicated", "mine"]),
        value: pick(["", "a", "z"]),
        effect: pick(["NoSchedule"]),
      }),
      { selector: ({ key, effect }) => key + effect, maxLength: 2 },
    ),
  })
  .map(({ name, labels, taints }) => node(name, labels, { spec: { taints } }));

/** Of two policies with one name, as a cluster never has them, the first. */
function distinct(policies: readonly JsonObject[]): JsonObject[] {
  const seen = new Map(policies.map((one) => [`${one["kind"]} ${at(one, "metadata", "name")}`, one]));
  return [...seen.values()];
}

test("whatever the policies: one write is enough, and their order does not matter", () => {
  fc.assert(
    fc.property(anyPolicies, anyNode, (some, one) => {
      const policies = distinct(some);
      const index = indexWith(policies);
      const after = patched(one, index);
      expect(patchFor(after, index)).toEqual([]);
      expect(patched(one, indexWith([...policies].reverse()))).toEqual(after);
    }),
    { numRuns: 400 },
  );
});

test("whatever the policies: protected and unowned labels stay, and so do others' taints once all rules are gone", () => {
  fc.assert(
    fc.property(anyPolicies, anyNode, (some, one) => {
      const policies = distinct(some);
      const after = patched(one, indexWith(policies));
      const owning = policies.filter(({ kind }) => kind === "OwnedLabels");
      for (const key of Object.keys(labelsOf(one) ?? {})) {
        if (key === "kubernetes.io/os" || key.startsWith("node-role") || owning.length === 0)
          expect(labelsOf(after)).toHaveProperty([key]);
      }
      const bare = patched(after, indexWith([]));
      const ids = (list: unknown) => (list as JsonObject[] | undefined)?.map(({ key }) => key) ?? [];
      expect(ids(at(bare, "spec", "taints")).sort()).toEqual(
        expect.arrayContaining(ids(at(one, "spec", "taints")).filter((key) => key === "mine")),
      );
      expect(at(bare, "metadata", "annotations", RECORD)).toBeUndefined();
    }),
    { numRuns: 300 },
  );
});

test("policies that come and go leave the index as one made of those that stayed", () => {
  fc.assert(
    fc.property(anyPolicies, anyPolicies, anyNode, (first, second, one) => {
      const index = indexWith([]);
      const prepared = (list: readonly JsonObject[]) => {
        const made = indexWith(list);
        return [...made.rules, ...made.ownerships];
      };
      const gone = prepared(distinct(first));
      const stay = prepared(distinct(second));
      for (const policy of [...gone, ...stay]) index.add(policy);
      for (const policy of gone) index.remove(policy);
      expect(patched(one, index)).toEqual(patched(one, indexWith(distinct(second))));
    }),
    { numRuns: 300 },
  );
});
