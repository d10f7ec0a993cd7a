// Facts about placing pods that are easy to get wrong, each through the whole module as an API server would call it.
import { describe, expect, test } from "vitest";
import { outside } from "../../../../test/builders/outside.ts";
import { placed, placedWith, SHOP } from "../../../../test/builders/placed.ts";
import { controlledBy, deployment, pod, workload } from "../../../../test/builders/pod.ts";
import { clusterPolicy, namespacedPolicy } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import { effectsOf } from "../../../core/evaluate/effects.ts";
import { at, type Json, type JsonObject, listAt } from "../../../core/json.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const TERMS = ["spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"];
const CONTAINERS = { containers: [{ name: "c", image: "app:1" }] };

const policy = (name: string, spec: JsonObject): JsonObject =>
  clusterPolicy(name, { namespaceSelector: {}, podSelector: {}, ...spec });
const within = (key: string, ...values: string[]): JsonObject => ({ key, operator: "In", values });
const requiring = (...terms: readonly (readonly JsonObject[])[]): JsonObject => ({
  nodeAffinity: {
    [REQUIRED]: {
      nodeSelectorTerms: terms.map((matchExpressions) => ({ matchExpressions: [...matchExpressions] })),
    },
  },
});
const podWith = (spec: JsonObject): JsonObject => pod({ spec: { ...CONTAINERS, ...spec } });
const text = (value: Json): string => JSON.stringify(value);

describe("the scheduler's name", () => {
  const packing = policy("packing", { schedulerName: "packing" });
  const lastApplied = "kubectl.kubernetes.io/last-applied-configuration";
  const applied = { metadata: {}, spec: { schedulerName: "default-scheduler" } };

  test.each<[string, JsonObject, string]>([
    ["absent", podWith({}), "packing"],
    ["the default that the API server fills in", podWith({ schedulerName: "default-scheduler" }), "packing"],
    ["another", podWith({ schedulerName: "other" }), "other"],
    [
      "the default, written by the user and applied",
      pod({
        annotations: { [lastApplied]: text(applied) },
        spec: { ...CONTAINERS, schedulerName: "default-scheduler" },
      }),
      "default-scheduler",
    ],
    [
      "the default, owned by a manager of server-side apply",
      pod({
        metadata: {
          managedFields: [
            { manager: "kubectl", operation: "Apply", fieldsV1: { "f:spec": { "f:schedulerName": {} } } },
          ],
        },
        spec: { ...CONTAINERS, schedulerName: "default-scheduler" },
      }),
      "default-scheduler",
    ],
  ])("%s", (_what, object, expected) => {
    expect(at(placed([SHOP, packing], object).object, "spec", "schedulerName")).toBe(expected);
  });
});

describe("required node affinity", () => {
  const two = policy("two", { affinity: requiring([within("zone", "a")], [within("zone", "b")]) });
  const disks = policy("disks", { affinity: requiring([within("disk", "ssd")], [within("disk", "nvme")]) });
  const own = podWith({ affinity: requiring([within("pool", "x")], [within("pool", "y")]) });

  test("of two terms, applied up to five times, is the same to the byte", () => {
    const once = placed([SHOP, two, disks], own).object;
    expect(listAt(once, ...TERMS)).toHaveLength(8);
    let again = once;
    for (let i = 0; i < 4; i++) again = placed([SHOP, two, disks], again).object;
    expect(text(again)).toBe(text(once));
  });

  test("of two policies is the same to the byte in any order", () => {
    const [one, other] = [
      [SHOP, two, disks],
      [disks, two, SHOP],
    ].map((known) => text(placed(known, own).object));
    expect(other).toBe(one);
  });

  test("that contradicts the pod's is left out, the rest of the policy is not, with a warning", () => {
    const zone = policy("zone", {
      affinity: requiring([within("zone", "a")]),
      nodeSelector: { pool: "etcd" },
    });
    const { object, answer } = placed([SHOP, zone], podWith({ affinity: requiring([within("zone", "b")]) }));
    expect(listAt(object, ...TERMS)).toEqual([{ matchExpressions: [within("zone", "b")] }]);
    expect(at(object, "spec", "nodeSelector")).toEqual({ pool: "etcd" });
    expect(answer.warnings.join()).toMatch(/zone/);
  });

  test("that contradicts is refused if the policy says so", () => {
    const strict = policy("strict", { affinity: requiring([within("zone", "a")]), onConflict: "Refuse" });
    const { answer } = placed([SHOP, strict], podWith({ affinity: requiring([within("zone", "b")]) }));
    expect(answer.allowed).toBe(false);
  });

  test.each<[string, JsonObject, JsonObject, readonly JsonObject[]]>([
    [
      "an empty term of the policy matches nothing, and adds nothing",
      requiring([], [within("zone", "a")]),
      requiring([within("pool", "x")]),
      [{ matchExpressions: [within("pool", "x"), within("zone", "a")] }],
    ],
    [
      "an empty term of the pod still matches nothing",
      requiring([within("zone", "a")]),
      requiring([]),
      [{ matchExpressions: [] }],
    ],
    [
      "beside an empty term of the pod the others are narrowed",
      requiring([within("zone", "a")]),
      requiring([], [within("pool", "x")]),
      [{ matchExpressions: [] }, { matchExpressions: [within("pool", "x"), within("zone", "a")] }],
    ],
  ])("%s", (_what, wanted, present, expected) => {
    const { object } = placed([SHOP, policy("p", { affinity: wanted })], podWith({ affinity: present }));
    expect(listAt(object, ...TERMS)).toEqual(expected);
  });
});

test.each<[string, JsonObject, JsonObject, number]>([
  ["no operator is Equal", { key: "a", value: "b" }, { key: "a", operator: "Equal", value: "b" }, 1],
  [
    "another effect is another toleration",
    { key: "a", operator: "Exists", effect: "NoSchedule" },
    { key: "a", operator: "Exists", effect: "NoExecute" },
    2,
  ],
  [
    "another time is another value of the same toleration, and the pod's stays",
    { key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 60 },
    { key: "a", operator: "Exists", effect: "NoExecute" },
    1,
  ],
  ["another value is another toleration", { key: "a", value: "b" }, { key: "a", value: "c" }, 2],
])("tolerations: %s", (_what, present, wanted, count) => {
  const { object } = placed(
    [SHOP, policy("p", { tolerations: [wanted] })],
    podWith({ tolerations: [present] }),
  );
  expect(listAt(object, "spec", "tolerations")).toHaveLength(count);
  expect(listAt(object, "spec", "tolerations")[0]).toEqual(present);
});

test("a pod that tolerates everything still does, whatever a policy adds", () => {
  const wanted = { key: "a", operator: "Exists", effect: "NoExecute", tolerationSeconds: 60 };
  const { object } = placed(
    [SHOP, policy("p", { tolerations: [wanted] })],
    podWith({ tolerations: [{ operator: "Exists" }] }),
  );
  expect(listAt(object, "spec", "tolerations")[0]).toEqual({ operator: "Exists" });
});

test("a nodeSelector key of the pod keeps its value, and the policy's other keys are added", () => {
  const { object, answer } = placed(
    [SHOP, policy("p", { nodeSelector: { pool: "etcd", disk: "ssd" } })],
    podWith({ nodeSelector: { pool: "web" } }),
  );
  expect(at(object, "spec", "nodeSelector")).toEqual({ pool: "web", disk: "ssd" });
  expect(answer.warnings.join()).toMatch(/pool/);
});

test("a node and an affinity in one policy are both written", async () => {
  const both = policy("both", { nodeName: "n1", affinity: requiring([within("zone", "a")]) });
  const world = outside({ fact: () => ({ found: { metadata: { name: "n1" } }, complete: true }) });
  const { object } = await placedWith(world, [SHOP, both], podWith({}));
  expect(at(object, "spec", "nodeName")).toBe("n1");
  expect(listAt(object, ...TERMS)).toEqual([{ matchExpressions: [within("zone", "a")] }]);
});

describe("an update that may not be changed", () => {
  const inject = policy("inject", { onUpdate: "Inject", nodeSelector: { pool: "etcd" } });
  const job = workload("batch/v1", "Job", { metadata: { finalizers: ["orphan"] } });
  const bare = podWith({});

  test.each<[string, JsonObject, JsonObject]>([
    ["a finalizer removed from a Job", workload("batch/v1", "Job", {}), job],
    [
      "a finalizer removed from a pod",
      bare,
      pod({ metadata: { finalizers: ["batch.kubernetes.io/job-tracking"] } }),
    ],
    ["a pod that has its node", podWith({ nodeName: "n1" }), podWith({ nodeName: "n1" })],
    [
      "an object that is being deleted",
      deployment({ metadata: { deletionTimestamp: "2026-11-16T00:00:00Z" } }),
      deployment(),
    ],
  ])("%s", (_what, object, oldObject) => {
    const { evaluation, answer } = placed(
      [SHOP, inject],
      requestFor(object, { operation: "UPDATE", oldObject }),
    );
    expect(answer.allowed).toBe(true);
    expect(evaluation.draft.edits).toEqual([]);
  });

  test("a suspended Job may, a Job that is only now being suspended may not", () => {
    const suspend = (on: boolean): JsonObject => {
      const { spec, ...rest } = workload("batch/v1", "Job", {});
      return { ...rest, spec: { ...(spec as JsonObject), suspend: on } };
    };
    const nodeSelector = (object: JsonObject, oldObject: JsonObject) =>
      placed([SHOP, inject], requestFor(object, { operation: "UPDATE", oldObject })).nodeSelector;
    expect(nodeSelector(suspend(true), suspend(true))).toEqual({ pool: "etcd" });
    expect(nodeSelector(suspend(false), suspend(true))).toEqual({ pool: "etcd" });
    expect(nodeSelector(suspend(true), suspend(false))).toBeUndefined();
  });
});

describe("one policy that can't be read", () => {
  test("does not prevent another policy from applying completely", () => {
    const broken = policy("broken", { podSelector: { matchExpressions: [{ key: "a", operator: "Inn" }] } });
    const good = policy("good", {
      tolerations: [{ key: "a", operator: "Exists" }],
      nodeSelector: { pool: "etcd" },
    });
    const { object } = placed([SHOP, broken, good], podWith({}));
    expect(at(object, "spec", "nodeSelector")).toEqual({ pool: "etcd" });
    expect(listAt(object, "spec", "tolerations")).toHaveLength(1);
  });
});

test("a ReplicationController without a template is admitted unchanged", () => {
  const controller = {
    apiVersion: "v1",
    kind: "ReplicationController",
    metadata: { name: "r", namespace: "shop" },
  };
  const { evaluation, answer } = placed([SHOP, policy("p", { nodeSelector: { a: "b" } })], {
    ...controller,
    spec: { replicas: 0 },
  });
  expect(answer.allowed).toBe(true);
  expect(evaluation.draft.edits).toEqual([]);
});

test("twenty policies of both kinds, each with its own value: all are applied, in one order", () => {
  const known = Array.from({ length: 20 }, (_, i) => {
    const spec = { podSelector: {}, tolerations: [{ key: `k${i}`, operator: "Exists" }] };
    return i % 2 === 0
      ? clusterPolicy(`p${i}`, { ...spec, namespaceSelector: {} })
      : namespacedPolicy("shop", `p${i}`, spec);
  });
  const { object } = placed([SHOP, ...known], podWith({}));
  const turned = placed([SHOP, ...known.toReversed()], podWith({})).object;
  expect(listAt(object, "spec", "tolerations")).toHaveLength(20);
  expect(text(turned)).toBe(text(object));
});

describe("counted", () => {
  const known = [
    SHOP,
    clusterPolicy("wants", {
      namespaceSelector: {},
      podSelector: { matchLabels: { app: "web" } },
      nodeSelector: { pool: "web" },
    }),
    clusterPolicy("refuses", {
      namespaceSelector: {},
      podSelector: { matchLabels: { app: "strict" } },
      nodeSelector: { pool: "web" },
      onConflict: "Refuse",
    }),
  ];
  const owner = controlledBy("apps/v1", "DaemonSet", "agents");

  test.each<[string, JsonObject, "allow" | "patch" | "deny"]>([
    ["a pod that a policy selects", pod({ labels: { app: "web" } }), "patch"],
    ["one that none selects", pod({ labels: { app: "none" } }), "allow"],
    ["one that is exempt", pod({ labels: { app: "web" }, owner }), "allow"],
    [
      "one that is refused",
      pod({ labels: { app: "strict" }, spec: { ...CONTAINERS, nodeSelector: { pool: "other" } } }),
      "deny",
    ],
    [
      "one that already has it",
      pod({ labels: { app: "web" }, spec: { ...CONTAINERS, nodeSelector: { pool: "web" } } }),
      "allow",
    ],
  ])("%s: one decision for each hook that ran", (_what, object, verdict) => {
    const { evaluation } = placed(known, object);
    const decisions = effectsOf(evaluation).counts.filter(({ metric }) => metric === "usher_decisions_total");
    expect(decisions).toHaveLength(evaluation.asked.length);
    expect(decisions.map(({ labels }) => labels["verdict"])).toContain(verdict);
  });
});
