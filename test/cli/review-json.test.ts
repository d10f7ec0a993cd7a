import { applyPatch } from "rfc6902";
import { expect, test } from "vitest";
import { parse } from "yaml";
import { EXAMPLES, folder, reviewed, reviewedOne, usher } from "./usher.ts";

const SOURCE = ["--source", EXAMPLES];

const POD = (more = "") => `
apiVersion: v1
kind: Pod
metadata: {name: reports, namespace: shop, labels: {kind: batch}${more}}
spec: {containers: [{name: main, image: "a:1"}]}
`;

test("the fields are those of the contract, and the patch matches the changes", async () => {
  const { results, summary, code, err } = await reviewed(["-", ...SOURCE], POD());
  expect(code).toBe(0);
  expect(err).toBe("");
  expect(Object.keys(results[0] ?? {})).toEqual([
    "object",
    "file",
    "line",
    "verdict",
    "patch",
    "changes",
    "violations",
    "warnings",
    "audit",
    "unknown",
  ]);
  expect(results).toMatchObject([
    {
      object: { apiVersion: "v1", kind: "Pod", namespace: "shop", name: "reports" },
      verdict: "patch",
      changes: [
        { module: "placement", policy: "batch-nights", path: "spec.nodeSelector.pool" },
        { module: "placement", policy: "zone-a", path: "spec.nodeSelector[topology.kubernetes.io/zone]" },
      ],
      violations: [],
      warnings: [],
      audit: {},
      unknown: [],
    },
  ]);
  expect(summary).toEqual({ allowed: 1, unchanged: 0, patched: 1, denied: 0 });
  const pod = parse(POD());
  expect(applyPatch(pod, structuredClone(results[0]?.patch) as Parameters<typeof applyPatch>[1])).toEqual([
    null,
    null,
  ]);
  expect(pod.spec.nodeSelector).toEqual({ pool: "batch", "topology.kubernetes.io/zone": "a" });
});

test("allowed includes patched objects, and denied objects have neither patch nor changes", async () => {
  const source = folder({
    "policies.yaml": `
apiVersion: kupid.gardener.cloud/v1alpha1
kind: ClusterPodSchedulingPolicy
metadata: {name: strict}
spec: {failurePolicy: Fail, namespaceSelector: {matchLabels: {a: b}}, podSelector: {matchLabels: {strict: "yes"}}, nodeSelector: {x: one}}
---
apiVersion: kupid.gardener.cloud/v1alpha1
kind: PodSchedulingPolicy
metadata: {name: own, namespace: shop}
spec: {podSelector: {}, nodeSelector: {pool: own}}
`,
  });
  const pods = [POD(), POD().replace("reports", "strict").replace("kind: batch", 'strict: "yes"')];
  const other = POD().replace("shop", "lab");
  const { results, summary, code } = await reviewed(["-", "--source", source], [...pods, other].join("---"));
  expect(code).toBe(1);
  expect(summary).toEqual({ allowed: 2, unchanged: 1, patched: 1, denied: 1 });
  expect(results.map(({ verdict }) => verdict)).toEqual(["patch", "deny", "allow"]);
  expect(results[1]).toMatchObject({ patch: [], changes: [], unknown: ["Namespace shop"] });
  expect(results[1]?.violations).toEqual([
    {
      module: "placement",
      policy: "strict",
      rule: "selection",
      code: "USHER-P02",
      path: "",
      message: expect.stringContaining("strict"),
    },
  ]);
});

test("the patch applies to the object with defaults", async () => {
  const source = folder({
    "p.yaml": `
apiVersion: kupid.gardener.cloud/v1alpha1
kind: PodSchedulingPolicy
metadata: {name: own, namespace: shop}
spec: {podSelector: {}, nodeSelector: {pool: own}}
`,
  });
  const { patch } = await reviewedOne(["-", "--source", source], POD());
  expect(patch.map(({ op, path }) => `${op} ${path}`)).toEqual([
    "add /spec/nodeSelector",
    "add /metadata/annotations",
  ]);
});

test("facts that the source does not contain are unknown, and reported on stderr once", async () => {
  const source = folder({
    "p.yaml": `
apiVersion: kupid.gardener.cloud/v1alpha1
kind: ClusterPodSchedulingPolicy
metadata: {name: by-label}
spec: {namespaceSelector: {matchExpressions: [{key: a, operator: DoesNotExist}]}, podSelector: {}, nodeSelector: {x: one}}
`,
  });
  const two = `${POD()}---${POD().replace("reports", "other")}`;
  const { results, err, code } = await reviewed(["-", "--source", source], two);
  expect(code).toBe(0);
  for (const result of results) {
    expect(result).toMatchObject({ verdict: "allow", patch: [], unknown: ["Namespace shop"] });
    expect(result.warnings.join()).toContain("by-label");
  }
  expect(err.match(/does not have Namespace shop/g)).toHaveLength(1);
});

test("yaml equals json, and --trace only adds the trace", async () => {
  const args = ["-", ...SOURCE];
  const plain = await reviewed(args, POD());
  const yaml = await usher(["review", ...args, "-o", "yaml"], { stdin: POD() });
  const { results, summary } = plain;
  const named = { apiVersion: "cli.usher.dev/v1", kind: "Review" };
  expect(parse(yaml.out)).toEqual({ ...named, results, summary, problems: [] });
  const traced = await reviewed([...args, "--trace"], POD());
  const [{ trace, ...rest } = { trace: undefined }] = traced.results;
  expect([rest]).toEqual(plain.results);
  expect(trace).toEqual([
    {
      module: "placement",
      kind: "ClusterPodSchedulingPolicy",
      policy: "batch-nights",
      applies: "applies",
      why: "namespace shop, pod kind=batch",
      parts: ["+ nodeSelector pool=batch"],
    },
    {
      module: "placement",
      kind: "ClusterPodSchedulingPolicy",
      policy: "etcd-pool",
      applies: "not",
      why: "podSelector: needs app=etcd, there is no label app",
      parts: [],
    },
    expect.objectContaining({ policy: "shop/fast-disks", applies: "not" }),
    {
      module: "placement",
      kind: "ClusterPodSchedulingPolicy",
      policy: "zone-a",
      applies: "applies",
      why: "namespace shop (environment=prod), every pod",
      parts: ["+ nodeSelector topology.kubernetes.io/zone=a"],
    },
    {
      module: "pod-os",
      kind: "Setting",
      policy: "os.contradictions",
      applies: "not",
      why: "nothing names an OS, or all that names one agrees",
      parts: [],
    },
    expect.objectContaining({ module: "pod-os", policy: "os.nodeMismatch", applies: "not" }),
  ]);
});

test("-n applies to objects without a namespace, and generateName replaces a name", async () => {
  const nameless = POD().replace("name: reports, namespace: shop", "generateName: job-");
  const { object, changes } = await reviewedOne(["-", ...SOURCE, "-n", "lab"], nameless);
  expect(object).toEqual({ apiVersion: "v1", kind: "Pod", namespace: "lab", name: "job-*" });
  expect(changes.map(({ policy }) => policy)).toEqual(["batch-nights"]);
  expect((await reviewedOne(["-", ...SOURCE, "-n", "lab"], POD())).object.namespace).toBe("shop");
  expect((await reviewedOne(["-", ...SOURCE], nameless)).object.namespace).toBe("default");
  const cluster = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n";
  expect((await reviewedOne(["-", ...SOURCE, "-n", "lab"], cluster)).object.namespace).toBe("");
});
