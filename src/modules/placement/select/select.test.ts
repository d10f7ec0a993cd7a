import { describe, expect, test } from "vitest";
import { outside, outsideWith } from "../../../../test/builders/outside.ts";
import { placed, placedWith, SHOP } from "../../../../test/builders/placed.ts";
import { deployment, pod, workload } from "../../../../test/builders/pod.ts";
import { clusterPolicy, namespace, namespacedPolicy } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { Need } from "../../../core/decision/need.ts";
import type { Json, JsonObject } from "../../../core/json.ts";

const ZONE = { nodeSelector: { zone: "a" } };
const RED = { matchLabels: { team: "red" } };
const BLUE = { matchLabels: { team: "blue" } };
const ETCD = { matchLabels: { app: "etcd" } };

const applied = (known: readonly JsonObject[], sent: JsonObject = pod({ labels: { app: "etcd" } })) =>
  placed(known, sent).nodeSelector !== undefined;

describe("absent selects nothing, empty selects all", () => {
  const selectors: readonly [string, Json | undefined, boolean][] = [
    ["absent", undefined, false],
    ["null", null, false],
    ["empty", {}, true],
    ["empty inside", { matchLabels: {}, matchExpressions: [] }, true],
  ];
  const both = selectors.flatMap((pods) => selectors.map((namespaces) => [pods, namespaces] as const));

  test.each(both)(
    "podSelector %j, namespaceSelector %j",
    ([, pods, podsAll], [, namespaces, namespacesAll]) => {
      const spec: JsonObject = {
        ...ZONE,
        ...(pods === undefined ? {} : { podSelector: pods }),
        ...(namespaces === undefined ? {} : { namespaceSelector: namespaces }),
      };
      expect(applied([SHOP, clusterPolicy("p", spec)])).toBe(podsAll && namespacesAll);
    },
  );

  test.each(selectors)("of one namespace: podSelector %s", (_what, pods, all) => {
    const spec: JsonObject = { ...ZONE, ...(pods === undefined ? {} : { podSelector: pods }) };
    expect(applied([SHOP, namespacedPolicy("shop", "p", spec)])).toBe(all);
  });
});

describe("selection by object", () => {
  const CLUSTER = clusterPolicy("p", { ...ZONE, namespaceSelector: RED, podSelector: ETCD });

  test.each<[string, JsonObject[], boolean]>([
    ["its namespace and its labels", [SHOP], true],
    ["another team's namespace", [namespace("shop", { team: "blue" })], false],
    ["a namespace without labels", [namespace("shop")], false],
  ])("%s", (_what, namespaces, expected) => {
    expect(applied([...namespaces, CLUSTER])).toBe(expected);
  });

  test("other labels of the pod", () => {
    expect(applied([SHOP, CLUSTER], pod({ labels: { app: "web" } }))).toBe(false);
    expect(applied([SHOP, CLUSTER], pod())).toBe(false);
  });

  test("a namespaced policy applies only to its own namespace", () => {
    const policy = (where: string) => namespacedPolicy(where, "p", { ...ZONE, podSelector: ETCD });
    expect(applied([SHOP, policy("shop")])).toBe(true);
    expect(applied([SHOP, namespace("other"), policy("other")])).toBe(false);
  });

  test("the name of a namespace is independent of its labels", () => {
    const posing = namespace("shop", { "kubernetes.io/metadata.name": "other" });
    expect(applied([posing, namespacedPolicy("other", "p", { ...ZONE, podSelector: {} })])).toBe(false);
    expect(applied([posing, namespacedPolicy("shop", "p", { ...ZONE, podSelector: {} })])).toBe(true);
  });

  test("the template's labels decide, the object's do not", () => {
    const objectOnly = deployment({ objectLabels: { app: "etcd" }, labels: { app: "web" } });
    const templateOnly = deployment({ objectLabels: { app: "web" }, labels: { app: "etcd" } });
    expect(applied([SHOP, CLUSTER], objectOnly)).toBe(false);
    expect(applied([SHOP, CLUSTER], templateOnly)).toBe(true);
  });

  test("of a CronJob the innermost template's", () => {
    const job = workload("batch/v1", "CronJob", { objectLabels: { app: "web" }, labels: { app: "etcd" } });
    expect(placed([SHOP, CLUSTER], job).answer.patch[0]?.path).toBe(
      "/spec/jobTemplate/spec/template/spec/nodeSelector",
    );
    const other = workload("batch/v1", "CronJob", { objectLabels: { app: "etcd" }, labels: { app: "web" } });
    expect(applied([SHOP, CLUSTER], other)).toBe(false);
  });

  test("with generateName, and the namespace from the request", () => {
    const bare = { ...pod(), metadata: { generateName: "etcd-", labels: { app: "etcd" } } };
    expect(placed([SHOP, CLUSTER], requestFor(bare, { namespace: "shop" })).nodeSelector).toEqual({
      zone: "a",
    });
    // The namespace in the body does not count.
    const lying = { ...pod(), metadata: { name: "x", namespace: "shop", labels: { app: "etcd" } } };
    const other = [SHOP, namespace("other"), CLUSTER];
    expect(placed(other, requestFor(lying, { namespace: "other" })).nodeSelector).toBeUndefined();
  });
});

describe("an unknown namespace", () => {
  const NEED: Need = { get: { resource: "namespaces", name: "shop" } };
  const red = (failurePolicy: string, further: JsonObject = {}) =>
    clusterPolicy("p", { ...ZONE, namespaceSelector: RED, podSelector: {}, failurePolicy, ...further });

  test("is fetched, and found to be selected", async () => {
    const world = outsideWith([[NEED, { found: SHOP, complete: true }]]);
    const { nodeSelector, evaluation } = await placedWith(world, [red("Fail")], pod());
    expect(nodeSelector).toEqual({ zone: "a" });
    expect(world.fetches).toEqual([[NEED]]);
    expect(evaluation.unknown).toEqual([]);
  });

  test("is fetched, and found not to be selected", async () => {
    const world = outsideWith([[NEED, { found: namespace("shop", { team: "blue" }), complete: true }]]);
    const { answer } = await placedWith(world, [red("Fail")], pod());
    expect(answer).toMatchObject({ allowed: true, patch: [], warnings: [] });
  });

  test.each<["Ignore" | "Fail", object]>([
    ["Ignore", { allowed: true, patch: [] }],
    ["Fail", { allowed: false, status: { code: 403, reason: "Forbidden" } }],
  ])("is not to be had: %s", async (failurePolicy, expected) => {
    for (const fact of [
      { absent: "NotFound" },
      { failed: "no answer" },
      { found: "nonsense", complete: true },
    ] as const) {
      const { answer, evaluation } = await placedWith(
        outside({ fact: () => fact }),
        [red(failurePolicy)],
        pod(),
      );
      expect(answer).toMatchObject(expected);
      expect(evaluation.findings).toMatchObject([{ code: "USHER-P02", policy: { name: "p" } }]);
      expect(answer.warnings.join("\n")).toContain(failurePolicy === "Ignore" ? "USHER-P02" : "");
      expect(answer.audit).toEqual({
        "placement.unclear": "p",
        ...(failurePolicy === "Ignore"
          ? {}
          : {
              "placement.refused-by": expect.stringMatching(
                /^ClusterPodSchedulingPolicy\/p@1 \S+ USHER-P02$/,
              ),
            }),
      });
    }
  });

  test("a fail-open one does not prevent the others from applying", async () => {
    const other = clusterPolicy("other", {
      nodeSelector: { disk: "ssd" },
      namespaceSelector: {},
      podSelector: {},
    });
    const { nodeSelector } = await placedWith(outside(), [red("Ignore"), other], pod());
    expect(nodeSelector).toEqual({ disk: "ssd" });
  });

  test.each<[string, JsonObject[], boolean]>([
    ["all namespaces", [clusterPolicy("p", { ...ZONE, namespaceSelector: {}, podSelector: {} })], true],
    ["its own", [namespacedPolicy("shop", "p", { ...ZONE, podSelector: {} })], true],
    ["another's own", [namespacedPolicy("other", "p", { ...ZONE, podSelector: {} })], false],
    [
      "by name",
      [
        clusterPolicy("p", {
          ...ZONE,
          podSelector: {},
          namespaceSelector: {
            matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "In", values: ["shop"] }],
          },
        }),
      ],
      true,
    ],
    [
      "not by name, with any other labels",
      [
        clusterPolicy("p", {
          ...ZONE,
          podSelector: {},
          namespaceSelector: { matchLabels: { "kubernetes.io/metadata.name": "other", team: "red" } },
        }),
      ],
      false,
    ],
    [
      "pods that it does not select",
      [clusterPolicy("p", { ...ZONE, podSelector: ETCD, namespaceSelector: RED })],
      false,
    ],
  ])("is not fetched if the result does not depend on it: %s", (_what, policies, expected) => {
    expect(placed(policies, pod()).nodeSelector !== undefined).toBe(expected);
  });

  test("is fetched for an invalid policy as well: it may select other namespaces", async () => {
    const broken = red("Fail", { nodeSelector: { "-": "x" } });
    const blue = outsideWith([[NEED, { found: namespace("shop", { team: "blue" }), complete: true }]]);
    expect((await placedWith(blue, [broken], pod())).answer).toMatchObject({ allowed: true, warnings: [] });
    const same = outsideWith([[NEED, { found: SHOP, complete: true }]]);
    const { answer, evaluation } = await placedWith(same, [broken], pod());
    expect(answer.allowed).toBe(false);
    expect(evaluation.findings).toMatchObject([{ code: "USHER-P03" }]);
  });
});

describe("a broken policy", () => {
  const BAD = { matchExpressions: [{ key: "app", operator: "Within", values: ["x"] }] };
  const good = clusterPolicy("good", { ...ZONE, namespaceSelector: {}, podSelector: {} });

  test("beside a valid one: the valid one applies, the invalid one is reported", () => {
    const bad = clusterPolicy("bad", {
      nodeSelector: { disk: "x" },
      namespaceSelector: {},
      podSelector: BAD,
    });
    const { nodeSelector, answer } = placed([SHOP, bad, good], pod());
    expect(nodeSelector).toEqual({ zone: "a" });
    expect(answer.warnings).toHaveLength(1);
    expect(answer.warnings[0]).toContain("policy bad skipped");
    expect(answer.warnings[0]).toContain("USHER-P03");
  });

  test.each<[string, JsonObject, JsonObject, boolean]>([
    [
      "the namespace that its readable part selects",
      { namespaceSelector: RED, podSelector: BAD },
      pod(),
      false,
    ],
    ["another namespace", { namespaceSelector: BLUE, podSelector: BAD }, pod(), true],
    [
      "pods that its readable part selects",
      { namespaceSelector: BAD, podSelector: ETCD },
      pod({ labels: { app: "etcd" } }),
      false,
    ],
    ["other pods", { namespaceSelector: BAD, podSelector: ETCD }, pod(), true],
    ["no object, if nothing is readable", { namespaceSelector: BAD, podSelector: BAD }, pod(), true],
    ["no object, if one part selects nothing", { podSelector: BAD }, pod(), true],
  ])("with failurePolicy Fail refuses only %s", (_what, selectors, sent, allowed) => {
    const bad = clusterPolicy("bad", { ...ZONE, ...selectors, failurePolicy: "Fail" });
    const { answer } = placed([SHOP, bad, good], sent);
    expect(answer.allowed).toBe(allowed);
    if (!allowed) {
      expect(answer.status).toMatchObject({ code: 403 });
      expect(answer.status?.message).toContain("bad");
      expect(answer.status?.causes).toMatchObject([{ reason: "USHER-P03" }]);
      expect(answer.patch).toEqual([]);
    }
  });

  test("one bad value of a nodeSelector: nothing of that policy is applied", () => {
    const half = clusterPolicy("half", {
      namespaceSelector: {},
      podSelector: {},
      nodeSelector: { ok: "x", "-": "y" },
    });
    const { nodeSelector, answer } = placed([SHOP, half, good], pod());
    expect(nodeSelector).toEqual({ zone: "a" });
    expect(answer.warnings.join()).toContain("half");
  });

  test.each<Json>([
    null,
    "x",
    [],
    17,
    { podSelector: 1, namespaceSelector: [] },
    { podSelector: { matchLabels: [1] } },
  ])("of any shape (%j) harms no other", (spec) => {
    const bad = { ...clusterPolicy("bad", {}), spec };
    expect(placed([SHOP, bad, good], pod()).nodeSelector).toEqual({ zone: "a" });
  });
});

describe("several policies", () => {
  const wants = (name: string, zone: string, priority?: number) =>
    clusterPolicy(name, {
      namespaceSelector: {},
      podSelector: {},
      nodeSelector: { zone },
      ...(priority === undefined ? {} : { priority }),
    });
  const wantsHere = (name: string, zone: string, priority = 0) =>
    namespacedPolicy("shop", name, { podSelector: {}, nodeSelector: { zone }, priority });

  test.each<[string, JsonObject[], string]>([
    ["the higher priority", [wants("a", "a", 1), wants("b", "b", 2)], "b"],
    ["a negative one comes after none", [wants("a", "a", -1), wants("b", "b")], "b"],
    ["among equals the name", [wants("b", "b", 5), wants("a", "a", 5)], "a"],
    ["by code unit, not by locale", [wants("a1", "lower"), wants("a-1", "dash")], "dash"],
    ["cluster before namespace", [wantsHere("a", "here"), wants("b", "cluster")], "cluster"],
    ["but priority before that", [wantsHere("a", "here", 1), wants("b", "cluster")], "here"],
    ["one name, both kinds", [wantsHere("same", "here"), wants("same", "cluster")], "cluster"],
  ])("%s comes first", (_what, policies, zone) => {
    for (const order of [policies, [...policies].reverse()]) {
      expect(placed([SHOP, ...order], pod()).nodeSelector).toEqual({ zone });
    }
  });

  test("one name, both kinds: both apply, and provenance distinguishes them", () => {
    const cluster = clusterPolicy("same", {
      namespaceSelector: {},
      podSelector: {},
      nodeSelector: { a: "1" },
    });
    const here = namespacedPolicy("shop", "same", { podSelector: {}, nodeSelector: { b: "2" } });
    const { nodeSelector, evaluation } = placed([SHOP, cluster, here], pod());
    expect(nodeSelector).toEqual({ a: "1", b: "2" });
    expect(evaluation.findings.map(({ policy }) => policy?.kind)).toEqual([
      "ClusterPodSchedulingPolicy",
      "PodSchedulingPolicy",
    ]);
  });

  test("twenty of them are ordered", () => {
    const policies = Array.from({ length: 20 }, (_, i) =>
      clusterPolicy(`p${i}`, { namespaceSelector: {}, podSelector: {}, nodeSelector: { [`k${i}`]: "1" } }),
    );
    const { nodeSelector, answer } = placed([SHOP, ...policies], pod());
    expect(Object.keys(nodeSelector as JsonObject)).toHaveLength(20);
    expect(answer.patch.filter(({ path }) => path.startsWith("/spec"))).toHaveLength(1);
  });
});

test("a trace has the reason of every policy, also of those that select nothing", () => {
  const known = [
    SHOP,
    clusterPolicy("applies", { ...ZONE, namespaceSelector: RED, podSelector: {} }),
    clusterPolicy("other-pods", { ...ZONE, namespaceSelector: {}, podSelector: ETCD }),
    clusterPolicy("other-namespaces", { ...ZONE, namespaceSelector: BLUE, podSelector: {} }),
    clusterPolicy("inert", ZONE),
    clusterPolicy("broken", { namespaceSelector: {}, podSelector: {}, nodeSelector: { "-": "x" } }),
    clusterPolicy("unreadable", { namespaceSelector: 1, podSelector: 1 }),
  ];
  const { evaluation } = placed(known, pod(), { trace: true });
  const reported = Object.fromEntries(
    evaluation.trace.map(({ policy, applies, why }) => [policy.name, `${applies}: ${why}`]),
  );
  expect(reported).toMatchObject({
    applies: expect.stringMatching(/^applies: /),
    "other-pods": expect.stringMatching(/^not: podSelector: needs app=etcd/),
    "other-namespaces": expect.stringMatching(/^not: namespaceSelector: needs team=blue, team is red/),
    inert: "not: the policy selects nothing",
    broken: expect.stringMatching(/^failed: the policy is not valid: /),
    unreadable: expect.stringMatching(/^failed: the policy is not valid: spec\.podSelector/),
  });
  expect(evaluation.trace).toHaveLength(6);
});
