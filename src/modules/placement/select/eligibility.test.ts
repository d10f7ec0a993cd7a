import { describe, expect, test } from "vitest";
import { assemblyOf, atOnce, callOf } from "../../../../test/builders/evaluation.ts";
import { outside } from "../../../../test/builders/outside.ts";
import { placed, SHOP } from "../../../../test/builders/placed.ts";
import { controlledBy, deployment, pod, workload } from "../../../../test/builders/pod.ts";
import { came, clusterPolicy, namespace } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import { evaluate } from "../../../core/evaluate/evaluate.ts";
import { responseOf } from "../../../core/evaluate/response.ts";
import { DEFAULT_INSTALLATION } from "../../../core/installation/installation.ts";
import type { JsonObject } from "../../../core/json.ts";
import { workloadTable } from "../../../core/kubernetes/workloads.ts";
import { placement } from "../index.ts";

const ALL = clusterPolicy("all", { namespaceSelector: {}, podSelector: {}, nodeSelector: { zone: "a" } });

const placedAtAll = (sent: JsonObject, known: readonly JsonObject[] = [SHOP, ALL]) =>
  placed(known, sent).answer.patch.some(({ path }) => path.includes("nodeSelector"));

test.each<[string, JsonObject, string]>([
  ["Pod", pod(), "/spec"],
  ["ReplicationController", workload("v1", "ReplicationController"), "/spec/template/spec"],
  ["PodTemplate", workload("v1", "PodTemplate"), "/template/spec"],
  ["ReplicaSet", workload("apps/v1", "ReplicaSet"), "/spec/template/spec"],
  ["Deployment", deployment(), "/spec/template/spec"],
  ["StatefulSet", workload("apps/v1", "StatefulSet"), "/spec/template/spec"],
  ["DaemonSet", workload("apps/v1", "DaemonSet"), "/spec/template/spec"],
  ["Job", workload("batch/v1", "Job"), "/spec/template/spec"],
  ["CronJob", workload("batch/v1", "CronJob"), "/spec/jobTemplate/spec/template/spec"],
])("%s: its template", (_what, sent, spec) => {
  const { patch } = placed([SHOP, ALL], sent).answer;
  expect(patch[0]).toEqual({ op: "add", path: `${spec}/nodeSelector`, value: { zone: "a" } });
  expect(patch[1]?.path).toBe("/metadata/annotations");
  expect(patch).toHaveLength(2);
});

describe("who is left alone", () => {
  const DEPLOYMENT = controlledBy("apps/v1", "Deployment", "web");
  const DAEMON_SET = controlledBy("apps/v1", "DaemonSet", "logs");
  const CRON_JOB = controlledBy("batch/v1", "CronJob", "daily");
  const UNKNOWN = controlledBy("druid.gardener.cloud/v1alpha1", "Etcd", "main");
  const { controller: _controller, ...onlyOwner } = DAEMON_SET;

  test.each<[string, JsonObject, boolean]>([
    ["a ReplicaSet of a Deployment", workload("apps/v1", "ReplicaSet", { owner: DEPLOYMENT }), false],
    ["a ReplicaSet of anything", workload("apps/v1", "ReplicaSet", { owner: UNKNOWN }), false],
    ["a ReplicaSet that is merely owned", workload("apps/v1", "ReplicaSet", { owner: onlyOwner }), true],
    ["a pod of a ReplicaSet", pod({ owner: controlledBy("apps/v1", "ReplicaSet", "web-1") }), true],
    ["a pod of a DaemonSet", pod({ owner: DAEMON_SET }), false],
    ["a pod that a DaemonSet merely owns", pod({ owner: onlyOwner }), true],
    ["a pod of a foreign DaemonSet", pod({ owner: controlledBy("kruise.io/v1", "DaemonSet", "x") }), true],
    ["a mirror pod", pod({ annotations: { "kubernetes.io/config.mirror": "x" } }), false],
    ["a pod that has its node", pod({ spec: { nodeName: "n1" } }), false],
    ["a pod with an empty nodeName", pod({ spec: { nodeName: "" } }), true],
    ["a template with a nodeName", deployment({ spec: { nodeName: "n1" } }), true],
    ["a pod being deleted", pod({ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }), false],
    [
      "a Deployment being deleted",
      deployment({ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }),
      false,
    ],
    ["a Job of a CronJob", workload("batch/v1", "Job", { owner: CRON_JOB }), true],
    ["a Job of another known kind", workload("batch/v1", "Job", { owner: DEPLOYMENT }), false],
    ["a StatefulSet of a foreign kind", workload("apps/v1", "StatefulSet", { owner: UNKNOWN }), true],
    ["a StatefulSet of a known kind", workload("apps/v1", "StatefulSet", { owner: DEPLOYMENT }), false],
    [
      "owners that are nonsense",
      pod({ metadata: { ownerReferences: [null, "x", { controller: true }] } }),
      true,
    ],
  ])("%s: %s", (_what, sent, changed) => {
    expect(placedAtAll(sent)).toBe(changed);
    expect(placed([SHOP, ALL], sent).answer).toMatchObject({ allowed: true, warnings: [] });
  });

  test("a controller's copy of the provenance annotation is not changed either", () => {
    const note = { "usher.dev/provenance": '{"placement":[{"policy":"K/p","set":["/spec"]}]}' };
    const copy = workload("apps/v1", "ReplicaSet", { owner: DEPLOYMENT, annotations: note });
    expect(placed([SHOP, ALL], copy).answer.patch).toEqual([]);
  });
});

describe("pods, templates or both", () => {
  const only = (targets: string) =>
    clusterPolicy("all", { namespaceSelector: {}, podSelector: {}, nodeSelector: { zone: "a" }, targets });

  test.each<[string, boolean, boolean]>([
    ["Both", true, true],
    ["Pods", true, false],
    ["Templates", false, true],
  ])("%s", (targets, pods, templates) => {
    const known = [SHOP, only(targets)];
    expect(placedAtAll(pod(), known)).toBe(pods);
    for (const kind of ["Deployment", "StatefulSet", "DaemonSet"])
      expect(placedAtAll(workload("apps/v1", kind), known)).toBe(templates);
    expect(placedAtAll(workload("batch/v1", "CronJob"), known)).toBe(templates);
    expect(placedAtAll(workload("v1", "PodTemplate"), known)).toBe(templates);
  });

  test("the trace has the reason", () => {
    const why = (targets: string, sent: JsonObject) =>
      placed([SHOP, only(targets)], sent, { trace: true }).evaluation.trace[0];
    expect(why("Pods", deployment())).toMatchObject({
      applies: "not",
      why: "it is for pods only (spec.targets)",
    });
    expect(why("Templates", pod())).toMatchObject({
      applies: "not",
      why: "it is for templates only (spec.targets)",
    });
    expect(why("Pods", pod())).toMatchObject({ applies: "applies" });
  });

  test("an unreadable policy for pods does not affect templates", () => {
    const broken = clusterPolicy("p", {
      namespaceSelector: {},
      podSelector: {},
      tolerations: "nonsense",
      targets: "Pods",
      failurePolicy: "Fail",
    });
    expect(placed([SHOP, broken], pod()).answer.allowed).toBe(false);
    expect(placed([SHOP, broken], deployment()).answer).toMatchObject({ allowed: true, warnings: [] });
  });
});

test("further kinds by configuration, at the path of their template", () => {
  const workloads = workloadTable([
    {
      group: "argoproj.io",
      version: "v1alpha1",
      kind: "Rollout",
      resource: "rollouts",
      template: ["spec", "deep", "template"],
    },
  ]);
  const assembly = assemblyOf([placement], [SHOP, ALL].map(came), { ...DEFAULT_INSTALLATION, workloads });
  const rollout = (spec: JsonObject): JsonObject => ({
    apiVersion: "argoproj.io/v1alpha1",
    kind: "Rollout",
    metadata: { name: "web", namespace: "shop" },
    spec,
  });
  const patchOf = (object: JsonObject) =>
    responseOf(atOnce(evaluate(callOf(assembly, requestFor(object)), outside()))).patch;
  expect(patchOf(rollout({ deep: { template: { spec: { containers: [] } } } }))[0]?.path).toBe(
    "/spec/deep/template/spec/nodeSelector",
  );
  expect(patchOf(rollout({ template: { spec: { containers: [] } } }))).toEqual([]);
  // Objects that such a kind creates have its criteria.
  const owned = workload("apps/v1", "StatefulSet", {
    owner: controlledBy("argoproj.io/v1alpha1", "Rollout", "x"),
  });
  expect(patchOf(owned)).toEqual([]);
});

describe("requests without a call", () => {
  test.each(["kube-system", "kube-public", "kube-node-lease", "usher-system"])("pods in %s", (name) => {
    const { evaluation, answer } = placed([namespace(name), ALL], pod({ namespace: name }));
    expect(evaluation.asked).toEqual([]);
    expect(answer.patch).toEqual([]);
  });

  test.each<[string, object]>([
    ["subresources", { subResource: "scale" }],
    ["the status of pods", { operation: "UPDATE", subResource: "status", oldObject: pod() }],
    ["what goes", { operation: "DELETE", object: undefined, oldObject: pod() }],
    ["kinds without pods", { resource: { group: "", version: "v1", resource: "services" } }],
    [
      "kinds of other groups that are called so",
      { resource: { group: "metrics.k8s.io", version: "v1", resource: "pods" } },
    ],
    ["old versions", { resource: { group: "batch", version: "v1beta1", resource: "cronjobs" } }],
  ])("%s", (_what, change) => {
    expect(placed([SHOP, ALL], requestFor(pod(), change)).evaluation.asked).toEqual([]);
  });
});
