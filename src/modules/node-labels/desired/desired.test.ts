import { describe, expect, it } from "vitest";
import { indexWith, node, owned, patched, patchFor, rule } from "../../../../test/builders/node.ts";
import { KEY, set } from "../../../../test/builders/node-reconcile.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import { labelsOf } from "../../../core/kubernetes/object.ts";

const OWNED = owned("test", { domain: "test.openshift.io" });

function labelsAfter(policies: readonly JsonObject[], name: string, labels: JsonObject) {
  return labelsOf(patched(node(name, labels), indexWith(policies)));
}

describe("labels of a node by all rules", () => {
  it.each<[string, JsonObject[], string, JsonObject, JsonObject]>([
    ["a rule sets", [set("r", ["w-0"], { [KEY]: "bar1" })], "w-0", {}, { [KEY]: "bar1" }],
    ["it matches another node", [set("r", ["w-0"], { [KEY]: "bar1" })], "w-0-x", {}, {}],
    [
      "a wrong value is repaired",
      [set("r", ["w-0"], { [KEY]: "bar1" })],
      "w-0",
      { [KEY]: "x" },
      { [KEY]: "bar1" },
    ],
    ["no rule, no ownership: stays", [], "w-0", { [KEY]: "bar1" }, { [KEY]: "bar1" }],
    ["no rule, owned: removed", [OWNED], "w-0", { [KEY]: "bar1" }, {}],
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
      "the valid one beside it still applies",
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
    ["in any order of creation", [b, a], "from-a"],
    ["the higher priority", [a, b, strong], "from-z"],
    ["of one name, the first namespace", [a, elsewhere], "other"],
    ["the winner deleted, the other value", [b], "from-b"],
  ])("%s", (_what, policies, value) => {
    expect(labelsAfter(policies, "w-0", { [KEY]: "from-a" })?.[KEY]).toBe(value);
  });
});

describe("nodes by labels", () => {
  const select = (labels: JsonObject, more: JsonObject = {}) =>
    rule("s", { nodeSelector: { matchLabels: labels }, labels: { "x.y/set": "1" }, ...more });

  it.each<[string, JsonObject[], JsonObject, boolean]>([
    ["the selector matches", [select({ rack: "7" })], { rack: "7" }, true],
    ["the selector does not match", [select({ rack: "7" })], { rack: "8" }, false],
    [
      "selector and patterns must match",
      [select({ rack: "7" }, { nodeNamePatterns: ["other"] })],
      { rack: "7" },
      false,
    ],
    [
      "a label that a rule sets counts as absent",
      [select({ rack: "7" }), set("r", ["other"], { rack: "8" })],
      { rack: "7" },
      false,
    ],
    [
      "also for DoesNotExist",
      [
        rule("s", {
          nodeSelector: { matchExpressions: [{ key: "rack", operator: "DoesNotExist" }] },
          labels: { "x.y/set": "1" },
        }),
        set("r", ["other"], { rack: "8" }),
      ],
      { rack: "7" },
      true,
    ],
    [
      "an invalid pattern does not widen it",
      [select({ rack: "7" }, { nodeNamePatterns: ["["] })],
      { rack: "7" },
      false,
    ],
  ])("%s", (_what, policies, labels, matches) => {
    expect(labelsAfter(policies, "w-0", labels)?.["x.y/set"]).toBe(matches ? "1" : undefined);
  });
});

it("rules of other namespaces are ignored if the configuration names one", () => {
  const index = indexWith([set("r", ["w-0"], { [KEY]: "1" })], { namespace: "usher-rules" });
  expect(patchFor(node("w-0"), index)).toEqual([]);
});

it("values beyond the limits of a node are left out, the last rules first", () => {
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

it("a key whose winning value exceeds the limit does not get the other value", () => {
  const big = Array.from({ length: 40 }, (_, i) => [`example.com/k${i}`, "v".repeat(4_000)]);
  const index = indexWith([
    rule("a", { nodeNamePatterns: [".*"], annotations: Object.fromEntries(big) }, {}),
    rule("z", { nodeNamePatterns: [".*"], annotations: { "example.com/k39": "small" } }, {}),
  ]);
  expect(at(patched(node("n"), index), "metadata", "annotations", "example.com/k39")).toBeUndefined();
});
