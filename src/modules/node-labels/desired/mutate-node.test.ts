import fc from "fast-check";
import { applyPatch } from "rfc6902";
import { describe, expect, it, test } from "vitest";
import { atOnce, callOf } from "../../../../test/builders/evaluation.ts";
import { again, anyKey, jsonObjectWith } from "../../../../test/builders/json.ts";
import {
  indexWith,
  node,
  nodeLabelsWith,
  owned,
  patched,
  patchFor,
  rule,
} from "../../../../test/builders/node.ts";
import { outside } from "../../../../test/builders/outside.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import { evaluate } from "../../../core/evaluate/evaluate.ts";
import { responseOf } from "../../../core/evaluate/response.ts";
import { at, isObject, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { checkAnnotationKey, checkLabelKey, checkLabelValue } from "../../../core/kubernetes/names.ts";
import { RECORD, recordOf } from "../ledger/record.ts";

const kubelet = (name: string) => ({
  username: `system:node:${name}`,
  groups: ["system:nodes", "system:authenticated"],
});

interface Born {
  readonly allowed: boolean;
  readonly node: JsonObject;
  readonly findings: readonly string[];
}

/** What comes of a node that is created: the object as the API server has it after the patch. */
function born(
  policies: readonly JsonObject[],
  one: JsonObject,
  asKubelet = false,
  settings?: JsonObject,
  known: readonly JsonObject[] = [],
): Born {
  const assembly = nodeLabelsWith([...policies, ...known], settings);
  const request = requestFor(
    again(one),
    asKubelet ? { userInfo: kubelet(stringAt(one, "metadata", "name") ?? "") } : {},
  );
  const evaluation = atOnce(evaluate(callOf(assembly, request), outside()));
  const answer = responseOf(evaluation);
  const patched = again(one);
  for (const error of applyPatch(
    patched,
    (answer.patch ?? []) as unknown as Parameters<typeof applyPatch>[1],
  ))
    if (error !== null) throw error;
  return {
    allowed: answer.allowed,
    node: patched,
    findings: evaluation.findings.map(({ rule: name, outcome, message }) => `${name} ${outcome}: ${message}`),
  };
}

const set = (name: string, labels: JsonObject, more: JsonObject = {}) =>
  rule(name, { nodeNamePatterns: ["n.*"], labels, ...more });

/** Each row was measured on a real API server: what it takes from a node that registers itself. */
describe("a node that registers itself", () => {
  it.each([
    ["test.openshift.io/foo", true],
    ["plain", true],
    ["node.kubernetes.io/pool", true],
    ["kubelet.kubernetes.io/x", true],
    ["node-role.kubernetes.io/edge", false],
    ["foo.k8s.io/x", false],
    ["node-restriction.kubernetes.io/x", false],
  ])("%s at birth: %s", (key, atBirth) => {
    const { node: made, allowed } = born([set("r", { [key]: "1" })], node("n9"), true);
    expect(allowed).toBe(true);
    expect(at(made, "metadata", "labels", key)).toBe(atBirth ? "1" : undefined);
    expect(at(made, "spec", "taints")).toEqual(
      atBirth ? undefined : [{ key: "usher.dev/starting", effect: "NoSchedule" }],
    );
    // And the controller does the rest in one write.
    const kept = patched(made, indexWith([set("r", { [key]: "1" })]));
    expect(at(kept, "metadata", "labels", key)).toBe("1");
    expect(at(kept, "spec", "taints")).toBeUndefined();
  });

  it("an administrator's node has everything at birth", () => {
    const { node: made } = born([set("r", { "node-role.kubernetes.io/edge": "" })], node("n9"));
    expect(at(made, "metadata", "labels", "node-role.kubernetes.io/edge")).toBe("");
    expect(at(made, "spec", "taints")).toBeUndefined();
  });

  it.each<[string, JsonObject | undefined, JsonObject[], boolean]>([
    ["is told", { openshift: true }, [], true],
    [
      "shows itself",
      undefined,
      [{ apiVersion: "config.openshift.io/v1", kind: "ClusterVersion", metadata: { name: "version" } }],
      true,
    ],
    [
      "is denied",
      { openshift: false },
      [{ apiVersion: "config.openshift.io/v1", kind: "ClusterVersion", metadata: { name: "version" } }],
      false,
    ],
    ["is none", undefined, [], false],
  ])("where OpenShift %s, its own roles at birth", (_what, settings, known, atBirth) => {
    const assembly = nodeLabelsWith([set("r", { "node-role.kubernetes.io/worker": "" })], settings);
    for (const object of known)
      assembly.apply([
        { resource: "clusterversions.config.openshift.io", namespace: "", name: "version", object },
      ]);
    const call = callOf(assembly, requestFor(node("n9"), { userInfo: kubelet("n9") }));
    const { draft } = atOnce(evaluate(call, outside()));
    expect(draft.get("metadata", "labels", "node-role.kubernetes.io/worker")).toBe(atBirth ? "" : undefined);
  });
});

describe("at birth", () => {
  it("what the kubelet says of a ruled key gives way, of others stays", () => {
    const { node: made } = born(
      [set("r", { "a.b/c": "ruled" })],
      node("n", { "a.b/c": "own", "a.b/d": "own" }),
    );
    expect(at(made, "metadata", "labels")).toEqual({ "a.b/c": "ruled", "a.b/d": "own" });
  });

  it("annotations and taints come as well, and the note says whose they are", () => {
    const more = {
      annotations: { "x.y/z": "1" },
      taints: [{ key: "dedicated", value: "edge", effect: "NoExecute" }],
      startupTaint: true,
    };
    const { node: made } = born([set("r", { "a.b/c": "1" }, more)], node("n"));
    expect(at(made, "spec", "taints")).toEqual([
      { key: "dedicated", value: "edge", effect: "NoExecute" },
      { key: "usher.dev/starting", effect: "NoSchedule" },
    ]);
    const { labels, annotations, taints } = recordOf(made);
    expect([...labels, ...annotations, ...taints]).toEqual([
      ["a.b/c", "default/r"],
      ["x.y/z", { rule: "default/r", value: "1" }],
      ["dedicated:NoExecute", { rule: "default/r", value: "edge" }],
    ]);
    expect(at(made, "metadata", "annotations", "usher.dev/provenance")).toBeUndefined();
  });

  it("a note that came with the node is replaced by the truth, or goes", () => {
    const forged = node("n", {}, { metadata: { annotations: { [RECORD]: "{}" } } });
    expect(at(born([], forged).node, "metadata", "annotations", RECORD)).toBeUndefined();
    expect(at(born([set("r", { "a.b/c": "1" })], forged).node, "metadata", "annotations", RECORD)).toContain(
      "default/r",
    );
  });

  it("a taint of another value is changed in its place", () => {
    const given = node(
      "n",
      {},
      {
        spec: {
          taints: [
            { key: "a", effect: "NoSchedule" },
            { key: "d", value: "x", effect: "NoSchedule" },
          ],
        },
      },
    );
    const { node: made } = born(
      [set("r", {}, { taints: [{ key: "d", value: "y", effect: "NoSchedule" }] })],
      given,
    );
    expect(at(made, "spec", "taints")).toEqual([
      { key: "a", effect: "NoSchedule" },
      { key: "d", value: "y", effect: "NoSchedule" },
    ]);
  });

  it("the startup taint has the key that the installation says", () => {
    const { node: made } = born([set("r", {}, { startupTaint: true })], node("n"), false, {
      startupTaint: "a.b/starting",
    });
    expect(at(made, "spec", "taints", 0, "key")).toBe("a.b/starting");
  });

  it("switched off, nobody is asked", () => {
    expect(nodeLabelsWith([], { enabled: false }).hooks).toEqual([]);
  });

  it("who asks why is told of every rule", () => {
    const assembly = nodeLabelsWith([
      set("in", {}),
      rule("out", { nodeNamePatterns: ["x"] }),
      set("by-label", {}, { nodeSelector: { matchLabels: { a: "b" } } }),
    ]);
    const { trace } = atOnce(evaluate(callOf(assembly, requestFor(node("n")), { trace: true }), outside()));
    expect(trace.map(({ policy, applies, why }) => `${policy.name} ${applies}: ${why}`).sort()).toEqual([
      "by-label not: nodeSelector: needs a=b, there is no label a",
      "in applies: the name n fits",
      "out not: no pattern fits the whole name n",
    ]);
  });

  it("what is deferred is said", () => {
    const { findings } = born([set("r", { "foo.k8s.io/x": "1" })], node("n9"), true);
    expect(findings).toContain(
      "deferred skipped: label foo.k8s.io/x=1 can't be set while a node registers itself; it follows at once",
    );
  });
});

/** What the API server makes of a node after webhooks, written here from its documents and not from the code under test. */
function refusedBecause(made: JsonObject, before: JsonObject, asKubelet: boolean): string[] {
  const why: string[] = [];
  const labels = at(made, "metadata", "labels");
  const had = at(before, "metadata", "labels");
  for (const [key, value] of Object.entries(isObject(labels) ? labels : {})) {
    if (isObject(had) && had[key] === value) continue;
    if (checkLabelKey(key) !== undefined || typeof value !== "string" || checkLabelValue(value) !== undefined)
      why.push(`label ${key}`);
    const domain = key.includes("/") ? key.replace(/\/.*/, "") : "";
    const theirs = /(^|\.)(kubernetes|k8s)\.io$/.test(domain);
    const mine =
      /(^|\.)(kubelet|node)\.kubernetes\.io$/.test(domain) ||
      /^((beta\.)?kubernetes\.io\/(os|arch)|kubernetes\.io\/hostname|(node|beta)\.kubernetes\.io\/instance-type|(topology|failure-domain\.beta)\.kubernetes\.io\/(zone|region))$/.test(
        key,
      );
    if (asKubelet && theirs && (!mine || /(^|\.)node-restriction\.kubernetes\.io$/.test(domain)))
      why.push(`NodeRestriction ${key}`);
  }
  const annotations = at(made, "metadata", "annotations");
  let bytes = 0;
  for (const [key, value] of Object.entries(isObject(annotations) ? annotations : {})) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(String(value));
    if (checkAnnotationKey(key) !== undefined || typeof value !== "string") why.push(`annotation ${key}`);
  }
  if (bytes > 262_144) why.push("annotations too large");
  const ids = listAt(made, "spec", "taints").map(
    (taint) => `${stringAt(taint, "key")}:${stringAt(taint, "effect")}`,
  );
  if (new Set(ids).size < ids.length) why.push("taint twice");
  for (const taint of listAt(made, "spec", "taints")) {
    if (
      checkLabelKey(stringAt(taint, "key") ?? "") !== undefined ||
      checkLabelValue(stringAt(taint, "value") ?? "") !== undefined
    )
      why.push("taint");
    if (!["NoSchedule", "PreferNoSchedule", "NoExecute"].includes(stringAt(taint, "effect") ?? ""))
      why.push("effect");
  }
  if (Buffer.byteLength(JSON.stringify(made)) > 1_000_000) why.push("too large for etcd");
  return why;
}

const domain = fc.constantFrom(
  "",
  "a.b/",
  "kubernetes.io/",
  "k8s.io/",
  "x.kubernetes.io/",
  "x.k8s.io/",
  "node-role.kubernetes.io/",
  "node.kubernetes.io/",
  "a.kubelet.kubernetes.io/",
  "node-restriction.kubernetes.io/",
  "beta.kubernetes.io/",
  "topology.kubernetes.io/",
  "A B/",
  "/",
  "a/b/",
);
const key = fc
  .tuple(
    domain,
    fc.oneof(
      fc.constantFrom(
        "os",
        "zone",
        "hostname",
        "worker",
        "edge",
        "x",
        "",
        "-",
        "a b",
        "__proto__",
        "constructor",
      ),
      fc.string({ unit: "binary", maxLength: 4 }),
    ),
  )
  .map((parts) => parts.join(""));
const value = fc.oneof(
  fc.constantFrom<unknown>("", "ok", "not ok", null, 7, true),
  fc.string({ unit: "binary", maxLength: 70 }),
);
const entries = fc
  .array(fc.tuple(key, value), { maxLength: 4 })
  .map((list) => Object.fromEntries(list) as JsonObject);
const taint = fc.record(
  { key, value, effect: fc.constantFrom("NoSchedule", "NoExecute", "PreferNoSchedule", "", "x") },
  { requiredKeys: [] },
);
const wildRule = fc.record(
  {
    nodeNamePatterns: fc.oneof(
      fc.constant(["n.*"]),
      fc.constant([".*", "["]),
      fc.array(fc.string(), { maxLength: 2 }),
    ),
    labels: entries,
    annotations: entries,
    taints: fc.array(taint, { maxLength: 3 }),
    priority: fc.oneof(fc.integer(), fc.constant("x")),
    startupTaint: fc.oneof(fc.boolean(), fc.constant(1)),
    nodeSelector: fc.oneof(fc.constant({}), jsonObjectWith(anyKey)),
  },
  { requiredKeys: [] },
);
const wildMetadata = fc.oneof(
  fc.constant({}),
  fc.constant({
    annotations: {
      "usher.dev/acknowledge": "kubernetes.io/os kubernetes.io/hostname topology.kubernetes.io/zone",
    },
  }),
);
const wildPolicies = fc.array(fc.tuple(fc.oneof(wildRule, jsonObjectWith(anyKey)), wildMetadata), {
  maxLength: 5,
});
const givenTaints = fc.constantFrom<JsonObject[]>(
  [],
  [{ key: "d", value: "x", effect: "NoSchedule" }],
  [{ key: "usher.dev/starting", effect: "NoExecute" }],
);
const givenNode = fc
  .record({
    labels: fc.constantFrom<unknown>(undefined, null, {}, { "a.b/x": "1" }),
    annotations: fc.constantFrom<unknown>(
      undefined,
      null,
      { big: "y".repeat(200_000) },
      { [RECORD]: "junk" },
    ),
    taints: fc.option(givenTaints, { nil: undefined }),
  })
  .map(
    ({ labels, annotations, taints }) =>
      ({
        apiVersion: "v1",
        kind: "Node",
        metadata: {
          name: "n9",
          ...(labels === undefined ? {} : { labels }),
          ...(annotations === undefined ? {} : { annotations }),
        },
        spec: taints === undefined ? {} : { taints },
      }) as JsonObject,
  );

test("no rule whatsoever can make a registration fail", () => {
  fc.assert(
    fc.property(wildPolicies, givenNode, fc.boolean(), (specs, one, asKubelet) => {
      const policies = specs.map(([spec, metadata], i) =>
        rule(`r${i}`, spec as JsonObject, metadata as JsonObject),
      );
      const { allowed, node: made } = born(policies, one, asKubelet);
      expect(allowed).toBe(true);
      expect(refusedBecause(made, one, asKubelet)).toEqual([]);
    }),
    { numRuns: 1_000 },
  );
});

test("nor can very many", () => {
  const spec = (i: number) => ({
    nodeNamePatterns: ["n.*"],
    labels: Object.fromEntries(
      Array.from({ length: 64 }, (_, k) => [`d${i}.example.com/k${k}`, "v".repeat(63)]),
    ),
    annotations: Object.fromEntries(
      Array.from({ length: 64 }, (_, k) => [`d${i}.example.com/a${k}`, "v".repeat(4_096)]),
    ),
    taints: Array.from({ length: 16 }, (_, k) => ({ key: `t${i}-${k}`, effect: "NoSchedule" })),
  });
  const policies = Array.from({ length: 300 }, (_, i) => rule(`r${i}`, spec(i)));
  const { allowed, node: made } = born(
    policies,
    node("n9", {}, { metadata: { annotations: { big: "y".repeat(150_000) } } }),
    true,
  );
  expect(allowed).toBe(true);
  expect(refusedBecause(made, node("n9"), true)).toEqual([]);
});

test("what a node is born with, the controller finds right: it writes only what was deferred", () => {
  fc.assert(
    fc.property(wildPolicies, fc.boolean(), (specs, asKubelet) => {
      const policies = specs.map(([spec, metadata], i) =>
        rule(`r${i}`, spec as JsonObject, metadata as JsonObject),
      );
      const { node: made } = born(policies, node("n9"), asKubelet);
      const patch = patchFor(made, indexWith(policies));
      const deferred = listAt(made, "spec", "taints").some(
        (one) => stringAt(one, "key") === "usher.dev/starting",
      );
      if (!deferred) expect(patch).toEqual([]);
      expect(patchFor(patched(made, indexWith(policies)), indexWith(policies))).toEqual([]);
    }),
    { numRuns: 300 },
  );
});

test("owned labels that a node brings along are the controller's to remove, not a reason to refuse", () => {
  const { allowed, node: made } = born([owned("o", { domain: "a.b" })], node("n9", { "a.b/x": "1" }), true);
  expect(allowed).toBe(true);
  expect(at(made, "metadata", "labels", "a.b/x")).toBe("1");
});
