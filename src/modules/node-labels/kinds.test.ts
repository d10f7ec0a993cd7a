import { describe, expect, it } from "vitest";
import { node, owned, rule } from "../../../test/builders/node.ts";
import { Gates } from "../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../core/installation/installation.ts";
import type { JsonObject } from "../../core/json.ts";
import { checkObject } from "../../core/policy/check.ts";
import { describeProblem } from "../../core/policy/problem.ts";
import { Store } from "../../core/view/store.ts";
import { labels, ownedLabels } from "./kinds.ts";
import { prepareOwnership } from "./rules/ownership.ts";
import { prepareRule } from "./rules/rule.ts";

function messages(object: JsonObject, severity: "error" | "warning"): string[] {
  const kind = object["kind"] === "Labels" ? labels : ownedLabels;
  return checkObject(kind, object, new Store())
    .filter((one) => one.severity === severity)
    .map(describeProblem);
}

const GOOD = { nodeNamePatterns: ["w.*"], labels: { "test.openshift.io/foo1": "bar1" } };
const ack = (text: string) => ({ annotations: { "usher.dev/acknowledge": text } });

describe("a rule is invalid", () => {
  it.each<[string, JsonObject, RegExp]>([
    [
      "a bad pattern, with its place",
      { ...GOOD, nodeNamePatterns: ["ok", "worker-["] },
      /nodeNamePatterns\[1\]: "worker-\[" is not a valid pattern: missing closing \] \(at character 8: "\["\)/,
    ],
    ["a bad key", { ...GOOD, labels: { "a b/c": "x" } }, /labels\[a b\/c\]: the prefix of a label key/],
    ["two slashes", { ...GOOD, labels: { "a/b/c": "x" } }, /at most one "\/"/],
    [
      "a bad value",
      { ...GOOD, labels: { "a/b": "not a value" } },
      /labels\[a\/b\]: "not a value" is not a label value/,
    ],
    [
      "a protected key",
      { ...GOOD, labels: { "kubernetes.io/hostname": "x" } },
      /managed by the kubelet.*USHER-L03.*usher.dev\/acknowledge: kubernetes.io\/hostname/,
    ],
    ["a bad annotation", { ...GOOD, annotations: { "a b": "x" } }, /annotations\[a b\]/],
    [
      "usher's own annotation",
      { ...GOOD, annotations: { "usher.dev/node-labels": "{}" } },
      /reserved for usher/,
    ],
    ["a bad taint", { ...GOOD, taints: [{ key: "a b", effect: "NoSchedule" }] }, /taints\[0\]\.key/],
    ["an unknown effect", { ...GOOD, taints: [{ key: "a", effect: "Never" }] }, /taints\[0\]\.effect/],
    [
      "a duplicate taint",
      {
        ...GOOD,
        taints: [
          { key: "a", effect: "NoExecute" },
          { key: "a", value: "b", effect: "NoExecute" },
        ],
      },
      /duplicate taint/,
    ],
    [
      "a bad selector",
      { ...GOOD, nodeSelector: { matchExpressions: [{ key: "a", operator: "In" }] } },
      /nodeSelector/,
    ],
    ["not a string", { ...GOOD, labels: { "a/b": 7 } }, /labels\[a\/b\]/],
  ])("%s", (_what, spec, message) => {
    expect(messages(rule("r", spec), "error").join("\n")).toMatch(message);
  });

  it.each<[string, JsonObject, JsonObject]>([
    ["upstream's sample", GOOD, {}],
    ["no pattern at all", { nodeNamePatterns: [], labels: {} }, {}],
    ["a role", { ...GOOD, labels: { "node-role.kubernetes.io/edge": "" } }, {}],
    [
      "an acknowledged protected key",
      { ...GOOD, labels: { "topology.kubernetes.io/zone": "a" } },
      ack("topology.kubernetes.io/zone"),
    ],
    [
      "one of several acknowledged",
      { ...GOOD, labels: { "kubernetes.io/os": "a" } },
      ack("x, kubernetes.io/os"),
    ],
  ])("valid: %s", (_what, spec, metadata) => {
    expect(messages(rule("r", spec, metadata), "error")).toEqual([]);
  });
});

describe("a rule is admitted with a warning", () => {
  it.each<[string, JsonObject, RegExp]>([
    ["for a key without a slash", { ...GOOD, labels: { plain: "x" } }, /has no domain/],
    [
      "for a key that a node can't register with",
      { ...GOOD, labels: { "node-role.kubernetes.io/edge": "" } },
      /USHER-L02/,
    ],
    ["where it matches no node", { labels: {} }, /matches no node/],
    ["for an empty pattern", { ...GOOD, nodeNamePatterns: [""] }, /matches no name/],
    [
      "for a role by a label that a kubelet sets",
      {
        nodeSelector: { matchLabels: { "example.com/pool": "edge" } },
        labels: { "node-role.kubernetes.io/edge": "" },
      },
      /any node could grant itself node-role/,
    ],
  ])("%s", (_what, spec, message) => {
    expect(messages(rule("r", spec), "error")).toEqual([]);
    expect(messages(rule("r", spec), "warning").join("\n")).toMatch(message);
  });

  it("but not for a role by a label that only administrators set", () => {
    const spec = {
      nodeSelector: { matchLabels: { "node-restriction.kubernetes.io/pool": "edge" } },
      labels: { "example.com/edge": "" },
    };
    expect(messages(rule("r", spec), "warning")).toEqual([]);
  });
});

describe("an OwnedLabels", () => {
  it.each<[string, JsonObject, JsonObject, RegExp]>([
    ["of everything", {}, {}, /without them every label would be owned/],
    ["of an empty domain", { domain: "" }, {}, /must not be empty/],
    ["of an invalid domain", { domain: "A B" }, {}, /is not a DNS subdomain/],
    ["of a bad pattern", { namePattern: "a(" }, {}, /is not a valid pattern: missing closing \)/],
    ["of kubernetes.io", { domain: "kubernetes.io" }, {}, /USHER-L03.*acknowledge: kubernetes.io/],
    ["of a whole subdomain", { domain: "node-role.kubernetes.io" }, {}, /USHER-L03/],
    [
      "of a whole subdomain, by any name",
      { domain: "node-role.kubernetes.io", namePattern: ".*" },
      {},
      /USHER-L03/,
    ],
    ["of a large part of it", { domain: "kubernetes.io", namePattern: "[a-m].+" }, {}, /USHER-L03/],
    ["of k8s.io, another acknowledged", { domain: "k8s.io" }, ack("kubernetes.io"), /USHER-L03/],
  ])("%s is invalid", (_what, spec, metadata, message) => {
    expect(messages(owned("o", spec, metadata), "error").join("\n")).toMatch(message);
    expect(prepareOwnership(owned("o", spec, metadata), { kind: "", name: "o" }).policy).toBeUndefined();
  });

  it.each<[string, JsonObject, JsonObject]>([
    ["of a domain", { domain: "test.openshift.io" }, {}],
    ["of names", { namePattern: "foo.*" }, {}],
    ["of both", { domain: "node-role.kubernetes.io", namePattern: "edge-.*" }, {}],
    ["of two names", { domain: "node-role.kubernetes.io", namePattern: "edge|core" }, {}],
    ["of any name elsewhere", { domain: "a.b", namePattern: ".*" }, {}],
    ["of any name, acknowledged", { domain: "kubernetes.io", namePattern: ".*" }, ack("kubernetes.io")],
    ["of kubernetes.io, acknowledged", { domain: "kubernetes.io" }, ack("kubernetes.io")],
  ])("%s is valid", (_what, spec, metadata) => {
    expect(messages(owned("o", spec, metadata), "error")).toEqual([]);
  });
});

it.each([null, 7, "x", [], {}, { nodeNamePatterns: 7, labels: "x", taints: [null, 7], annotations: [] }])(
  "prepare does not throw for any spec: %j",
  (spec) => {
    const object = { ...node("x"), spec: spec as JsonObject };
    expect(() => prepareRule(object, { kind: "", name: "" })).not.toThrow();
    expect(() => prepareOwnership(object, { kind: "", name: "" })).not.toThrow();
  },
);

describe("an object without effect is admitted with a warning", () => {
  const here = (object: JsonObject, settings: JsonObject) => {
    const installation = { ...DEFAULT_INSTALLATION, settings: { "node-labels": settings } };
    const configured = { installation, gates: new Gates([]) };
    const kind = object["kind"] === "Labels" ? labels : ownedLabels;
    return checkObject(kind, object, new Store(), configured).map((one) => [
      one.severity,
      describeProblem(one),
    ]);
  };
  const elsewhere = /^metadata\.namespace: has no effect: .*restricts node-labels to namespace rules/;

  it.each<[string, JsonObject, JsonObject, RegExp | undefined]>([
    ["a rule outside of the namespace", rule("r", GOOD), { namespace: "rules" }, elsewhere],
    ["an ownership outside of it", owned("o", { domain: "a.b" }), { namespace: "rules" }, elsewhere],
    ["a rule inside", rule("r", GOOD, { namespace: "rules" }), { namespace: "rules" }, undefined],
    ["a rule if any namespace counts", rule("r", GOOD), {}, undefined],
  ])("%s", (_what, object, settings, text) => {
    expect(here(object, settings)).toEqual(
      text === undefined ? [] : [["warning", expect.stringMatching(text)]],
    );
  });

  it("no warning without an installation", () => {
    expect(messages(rule("r", GOOD), "warning")).toEqual([]);
  });
});
