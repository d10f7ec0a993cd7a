import { describe, expect, test } from "vitest";
import { assemblyOf, atOnce, callOf } from "../../../../test/builders/evaluation.ts";
import { again } from "../../../../test/builders/json.ts";
import { outside } from "../../../../test/builders/outside.ts";
import { placed, SHOP } from "../../../../test/builders/placed.ts";
import { controlledBy, deployment, pod, workload } from "../../../../test/builders/pod.ts";
import { came, clusterPolicy, namespace, namespacedPolicy } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import { evaluate } from "../../../core/evaluate/evaluate.ts";
import { draftOf } from "../../../core/evaluate/evaluate-hooks.ts";
import { responseOf } from "../../../core/evaluate/response.ts";
import type { JsonObject } from "../../../core/json.ts";
import { placement } from "../index.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const REFUSE = { namespaceSelector: {}, podSelector: {}, enforcement: "Refuse" };
const POOL = clusterPolicy("pool", { ...REFUSE, nodeSelector: { pool: "etcd" } });

/** The answer of the validating hook. */
const judged = (policies: readonly JsonObject[], request: AdmissionRequest) =>
  placed([SHOP, ...policies], request, { phase: "validate" }).answer;
const created = (policies: readonly JsonObject[], object: JsonObject) => judged(policies, requestFor(object));

/** The same as a cluster does it: first all that mutates, then all that validates. */
function bothPhases(policies: readonly JsonObject[], object: JsonObject) {
  const assembly = assemblyOf([placement], [SHOP, ...policies].map(came));
  const request = requestFor(again(object));
  const draft = draftOf(request);
  const phase = (one: "mutate" | "validate") =>
    responseOf(atOnce(evaluate(callOf(assembly, request, { phase: one, draft }), outside())));
  return { mutated: phase("mutate"), validated: phase("validate") };
}

describe("unmet requirements", () => {
  const zoneA = { matchExpressions: [{ key: "zone", operator: "In", values: ["a"] }] };
  const affinity = (part: string, value: JsonObject | readonly JsonObject[]): JsonObject => ({
    affinity: { [part]: { [REQUIRED]: value } },
  });
  const other = { topologyKey: "zone", labelSelector: { matchLabels: { app: "x" } } };
  const merged = {
    ...other,
    matchLabelKeys: ["v"],
    labelSelector: {
      ...other.labelSelector,
      matchExpressions: [{ key: "v", operator: "In", values: ["1"] }],
    },
  };
  const spread = { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" };

  test.each<[string, JsonObject, JsonObject, string | undefined]>([
    ["nothing", { nodeSelector: { pool: "etcd" } }, { nodeSelector: { pool: "etcd", more: "x" } }, undefined],
    ["a nodeSelector", { nodeSelector: { pool: "etcd" } }, {}, "spec.nodeSelector.pool"],
    [
      "another value",
      { nodeSelector: { pool: "etcd" } },
      { nodeSelector: { pool: "web" } },
      "spec.nodeSelector.pool",
    ],
    [
      "nothing: the terms pin the label",
      { nodeSelector: { zone: "a" } },
      affinity("nodeAffinity", { nodeSelectorTerms: [zoneA] }),
      undefined,
    ],
    ["a scheduler", { schedulerName: "mine" }, { schedulerName: "default-scheduler" }, "spec.schedulerName"],
    ["a class", { priorityClassName: "high" }, {}, "spec.priorityClassName"],
    ["a runtime", { runtimeClassName: "gvisor" }, { runtimeClassName: "runc" }, "spec.runtimeClassName"],
    [
      "required node affinity",
      affinity("nodeAffinity", { nodeSelectorTerms: [zoneA] }),
      {},
      `spec.affinity.nodeAffinity.${REQUIRED}`,
    ],
    [
      "none: the nodeSelector implies it",
      affinity("nodeAffinity", { nodeSelectorTerms: [zoneA] }),
      { nodeSelector: { zone: "a" } },
      undefined,
    ],
    [
      "terms that match no node, which no node affinity meets",
      affinity("nodeAffinity", { nodeSelectorTerms: [{}, {}] }),
      { nodeSelector: { zone: "a" } },
      `spec.affinity.nodeAffinity.${REQUIRED}`,
    ],
    [
      "nothing: the pod matches no node either",
      affinity("nodeAffinity", { nodeSelectorTerms: [{}] }),
      affinity("nodeAffinity", { nodeSelectorTerms: [{}] }),
      undefined,
    ],
    ["a pod term", affinity("podAffinity", [other]), {}, `spec.affinity.podAffinity.${REQUIRED}`],
    [
      "nothing: the API server has merged matchLabelKeys",
      affinity("podAntiAffinity", [{ ...other, matchLabelKeys: ["v"] }]),
      affinity("podAntiAffinity", [merged]),
      undefined,
    ],
    [
      "an anti term",
      affinity("podAntiAffinity", [other]),
      affinity("podAntiAffinity", [{ topologyKey: "zone" }]),
      `spec.affinity.podAntiAffinity.${REQUIRED}`,
    ],
    [
      "a toleration",
      { tolerations: [{ key: "a", operator: "Exists" }] },
      { tolerations: [{ key: "a", value: "b" }] },
      "spec.tolerations",
    ],
    [
      "nothing: a wider toleration",
      { tolerations: [{ key: "a", value: "b" }] },
      { tolerations: [{ operator: "Exists" }] },
      undefined,
    ],
    ["a spread", { topologySpreadConstraints: [spread] }, {}, "spec.topologySpreadConstraints"],
    [
      "nothing: a spread that is a preference",
      { topologySpreadConstraints: [{ ...spread, whenUnsatisfiable: "ScheduleAnyway" }] },
      {},
      undefined,
    ],
    [
      "a gate",
      { schedulingGates: [{ name: "g" }] },
      { schedulingGates: [{ name: "h" }] },
      "spec.schedulingGates",
    ],
    [
      "nothing: a preference",
      {
        affinity: {
          nodeAffinity: {
            preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: zoneA }],
          },
        },
      },
      {},
      undefined,
    ],
  ])("%s: %#", (_what, criteria, spec, field) => {
    const answer = created([clusterPolicy("p", { ...REFUSE, ...criteria })], pod({ spec }));
    expect(answer.status?.causes.map((cause) => cause.field)).toEqual(
      field === undefined ? undefined : [field],
    );
    expect(answer.allowed).toBe(field === undefined);
  });

  test("are reported with the policy, the field, the remedy and the code", () => {
    const { status } = created([POOL], deployment());
    expect(status).toMatchObject({ code: 403, reason: "Forbidden" });
    expect(status?.message).toMatch(
      /policy pool requires pool=etcd at spec\.template\.spec\.nodeSelector\.pool.*; remove .*USHER-P30/,
    );
  });

  test("with Warn it is admitted, with a warning", () => {
    const warns = clusterPolicy("pool", { ...REFUSE, enforcement: "Warn", nodeSelector: { pool: "etcd" } });
    const answer = created([warns], pod());
    expect(answer.allowed).toBe(true);
    expect(answer.warnings.join()).toContain("policy pool requires pool=etcd");
  });
});

describe("after mutation", () => {
  test("nothing is unmet if nothing conflicted", () => {
    const { mutated, validated } = bothPhases([POOL], pod());
    expect(mutated.patch).not.toEqual([]);
    expect(validated).toMatchObject({ allowed: true, warnings: [] });
  });

  test("a part that a conflict left out is unmet, and only that policy refuses", () => {
    const lenient = clusterPolicy("zone", { ...REFUSE, enforcement: "None", nodeSelector: { zone: "a" } });
    const own = { nodeSelector: { pool: "web", zone: "b" } };
    const { mutated, validated } = bothPhases([POOL, lenient], pod({ spec: own }));
    expect(mutated.allowed).toBe(true);
    expect(validated.status?.causes.map(({ field }) => field)).toEqual(["spec.nodeSelector.pool"]);
  });
});

describe("evaluated requests", () => {
  const DAEMON_SET = controlledBy("apps/v1", "DaemonSet", "logs");
  const DEPLOYMENT = controlledBy("apps/v1", "Deployment", "web");
  const only = (targets: string) =>
    clusterPolicy("pool", { ...REFUSE, targets, nodeSelector: { pool: "etcd" } });

  test.each<[string, JsonObject, JsonObject, boolean]>([
    ["a pod", POOL, pod(), false],
    ["a CronJob", POOL, workload("batch/v1", "CronJob"), false],
    ["a pod, by a policy for templates", only("Templates"), pod(), true],
    ["a template, by a policy for pods", only("Pods"), deployment(), true],
    ["a template, by a policy for templates", only("Templates"), deployment(), false],
    ["a pod that claims a DaemonSet", POOL, pod({ owner: DAEMON_SET }), false],
    [
      "a ReplicaSet that claims a Deployment",
      POOL,
      workload("apps/v1", "ReplicaSet", { owner: DEPLOYMENT }),
      false,
    ],
    ["a pod created with its node", POOL, pod({ spec: { nodeName: "n1" } }), false],
    [
      "one that meets the requirements",
      POOL,
      pod({ spec: { nodeName: "n1", nodeSelector: { pool: "etcd" } } }),
      true,
    ],
    [
      "a mirror pod that no kubelet created",
      POOL,
      pod({ annotations: { "kubernetes.io/config.mirror": "x" } }),
      false,
    ],
    ["what goes", POOL, pod({ metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" } }), true],
    [
      "a pod that the policy does not select",
      namespacedPolicy("other", "p", { ...REFUSE, nodeSelector: { a: "b" } }),
      pod(),
      true,
    ],
    [
      "one without a template",
      POOL,
      {
        apiVersion: "v1",
        kind: "ReplicationController",
        metadata: { name: "r", namespace: "shop" },
        spec: {},
      },
      true,
    ],
    [
      "by a policy that does not enforce",
      clusterPolicy("p", { ...REFUSE, enforcement: "None", nodeSelector: { a: "b" } }),
      pod(),
      true,
    ],
  ])("%s", (_what, policy, object, allowed) => {
    expect(created([policy], object).allowed).toBe(allowed);
  });

  test("no mirror pod of a kubelet: it runs already", () => {
    const mirror = pod({
      annotations: { "kubernetes.io/config.mirror": "x" },
      spec: { nodeName: "n1", containers: [] },
    });
    const by = (username: string) =>
      judged([POOL], requestFor(mirror, { userInfo: { username, groups: [] } })).allowed;
    expect([by("system:node:n1"), by("mallory")]).toEqual([true, false]);
  });

  test("none in the control plane's namespaces", () => {
    const { evaluation } = placed([namespace("kube-system"), POOL], pod({ namespace: "kube-system" }), {
      phase: "validate",
    });
    expect(evaluation.asked).toEqual([]);
  });

  test("updates that remove a met requirement", () => {
    const without = deployment();
    const having = deployment({ spec: { containers: [], nodeSelector: { pool: "etcd" } } });
    const update = (oldObject: JsonObject, object: JsonObject) =>
      judged([POOL], requestFor(object, { operation: "UPDATE", oldObject })).allowed;
    expect(update(having, without)).toBe(false);
    expect(update(without, having)).toBe(true);
    // It lacked it before: the policy is newer than the workload.
    expect(update(without, deployment({ spec: { containers: [{ name: "c", image: "new" }] } }))).toBe(true);
    expect(update(without, deployment({ objectLabels: { a: "b" } }))).toBe(true);
  });
});
