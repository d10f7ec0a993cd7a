import fc from "fast-check";
import { expect, test } from "vitest";
import { anyKey, jsonObjectWith } from "../../../../test/builders/json.ts";
import { mutated } from "../../../../test/builders/mutated-node.ts";
import { indexWith, node, patched, patchFor, rule } from "../../../../test/builders/node.ts";
import { at, isObject, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { checkAnnotationKey, checkLabelKey, checkLabelValue } from "../../../core/kubernetes/names.ts";
import { RECORD } from "../ledger/record.ts";

/** Why the API server would refuse a node after webhooks, written from its documentation and not from the code under test. */
function refusalsOf(made: JsonObject, before: JsonObject, asKubelet: boolean): string[] {
  const why: string[] = [];
  const labels = at(made, "metadata", "labels");
  const had = at(before, "metadata", "labels");
  for (const [key, value] of Object.entries(isObject(labels) ? labels : {})) {
    if (isObject(had) && had[key] === value) continue;
    if (checkLabelKey(key) !== undefined || typeof value !== "string" || checkLabelValue(value) !== undefined)
      why.push(`label ${key}`);
    const domain = key.includes("/") ? key.replace(/\/.*/, "") : "";
    const isKubernetes = /(^|\.)(kubernetes|k8s)\.io$/.test(domain);
    const admitted =
      /(^|\.)(kubelet|node)\.kubernetes\.io$/.test(domain) ||
      /^((beta\.)?kubernetes\.io\/(os|arch)|kubernetes\.io\/hostname|(node|beta)\.kubernetes\.io\/instance-type|(topology|failure-domain\.beta)\.kubernetes\.io\/(zone|region))$/.test(
        key,
      );
    if (asKubelet && isKubernetes && (!admitted || /(^|\.)node-restriction\.kubernetes\.io$/.test(domain)))
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

test("no rule can make a registration fail", () => {
  fc.assert(
    fc.property(wildPolicies, givenNode, fc.boolean(), (specs, one, asKubelet) => {
      const policies = specs.map(([spec, metadata], i) =>
        rule(`r${i}`, spec as JsonObject, metadata as JsonObject),
      );
      const { allowed, node: made } = mutated(policies, one, asKubelet);
      expect(allowed).toBe(true);
      expect(refusalsOf(made, one, asKubelet)).toEqual([]);
    }),
    { numRuns: 1_000 },
  );
});

test("very many rules can't either", () => {
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
  const { allowed, node: made } = mutated(
    policies,
    node("n9", {}, { metadata: { annotations: { big: "y".repeat(150_000) } } }),
    true,
  );
  expect(allowed).toBe(true);
  expect(refusalsOf(made, node("n9"), true)).toEqual([]);
});

test("after a node is created the controller writes only deferred values", () => {
  fc.assert(
    fc.property(wildPolicies, fc.boolean(), (specs, asKubelet) => {
      const policies = specs.map(([spec, metadata], i) =>
        rule(`r${i}`, spec as JsonObject, metadata as JsonObject),
      );
      const { node: made } = mutated(policies, node("n9"), asKubelet);
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
