import { describe, expect, test } from "vitest";
import { placed, SHOP } from "../../../../test/builders/placed.ts";
import { deployment, pod } from "../../../../test/builders/pod.ts";
import { clusterPolicy } from "../../../../test/builders/policy.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import { PROVENANCE } from "../../../core/provenance/annotation.ts";

const policy = (nodeSelector: Json | undefined, name = "p", further: JsonObject = {}) =>
  clusterPolicy(name, {
    namespaceSelector: {},
    podSelector: {},
    ...(nodeSelector === undefined ? {} : { nodeSelector }),
    ...further,
  });

const V = { newKey: "newValue" };

/** The rows of the original's table that a request can have, for nodeSelector. */
describe("one policy, one pod", () => {
  test.each<[string, policy: Json | undefined, pod: Json | undefined, expected: Json | undefined]>([
    ["none into an empty one", undefined, undefined, undefined],
    ["an empty one into empty", {}, undefined, undefined],
    ["none into one that has it", undefined, V, V],
    ["the same again", V, V, V],
    ["into empty", V, undefined, V],
    ["into an empty map", V, {}, V],
    ["into null", V, null, V],
    ["beside another key", V, { oldKey: "oldValue" }, { oldKey: "oldValue", ...V }],
    ["same key, another value: the pod's stays", V, { newKey: "oldValue" }, { newKey: "oldValue" }],
    ["same key with an empty value: it is a value", V, { newKey: "" }, { newKey: "" }],
    ["a null key is absent", V, { newKey: null }, V],
    ["one key conflicts, the other is added", { a: "1", b: "2" }, { a: "9" }, { a: "9", b: "2" }],
    ["keys with slashes and dots", { "a.b/c": "x" }, undefined, { "a.b/c": "x" }],
  ])("%s", (_what, wanted, present, expected) => {
    for (const make of [pod, deployment]) {
      const sent = make({
        spec: { containers: [], ...(present === undefined ? {} : { nodeSelector: present }) },
      });
      const first = placed([SHOP, policy(wanted)], sent);
      expect(first.answer.allowed).toBe(true);
      expect(first.nodeSelector).toEqual(expected);
      // Only the provenance annotation has changed, and a second time nothing has.
      const paths = first.answer.patch.map(({ path }) => path);
      for (const path of paths) expect(path).toMatch(/nodeSelector|\/metadata\/annotations/);
      expect(placed([SHOP, policy(wanted)], first.object).answer.patch).toEqual([]);
    }
  });
});

describe("findings", () => {
  test("a conflict with the pod", () => {
    const { answer, evaluation } = placed(
      [SHOP, policy({ zone: "a" })],
      pod({ spec: { nodeSelector: { zone: "b" } } }),
    );
    expect(answer.warnings).toEqual([
      "nodeSelector zone: kept the pod's value b; policy p wants a (USHER-P01)",
    ]);
    expect(answer.patch).toEqual([]);
    expect(evaluation.findings).toMatchObject([
      { outcome: "skipped", path: ["spec", "nodeSelector", "zone"] },
    ]);
  });

  test("a conflict between policies names the first one", () => {
    const { answer, nodeSelector } = placed(
      [SHOP, policy({ zone: "b" }, "b"), policy({ zone: "a" }, "a")],
      pod(),
    );
    expect(nodeSelector).toEqual({ zone: "a" });
    expect(answer.warnings).toEqual([
      "nodeSelector zone: kept policy a's value a; policy b wants b (USHER-P01)",
    ]);
  });

  test("equal values of policies are not a conflict", () => {
    const { answer, evaluation } = placed(
      [SHOP, policy({ zone: "a" }, "b"), policy({ zone: "a" }, "a")],
      pod(),
    );
    expect(answer.warnings).toEqual([]);
    expect(evaluation.findings.map(({ outcome, policy: by }) => [outcome, by?.name])).toEqual([
      ["applied", "a"],
      ["same", "b"],
    ]);
  });

  test("provenance records the origin", () => {
    const { object } = placed([SHOP, policy({ zone: "a", disk: "ssd" })], deployment());
    expect(object).toHaveProperty(
      ["metadata", "annotations", PROVENANCE],
      JSON.stringify({
        placement: [
          {
            policy: "ClusterPodSchedulingPolicy/p",
            uid: "uid-of-p",
            generation: 1,
            set: ["/spec/template/spec/nodeSelector/disk", "/spec/template/spec/nodeSelector/zone"],
          },
        ],
      }),
    );
  });
});

describe("hostile shapes get an answer, and no invalid patch", () => {
  test.each<[string, JsonObject]>([
    ["a text", pod({ spec: { nodeSelector: "zone=a" } })],
    ["a list", pod({ spec: { nodeSelector: ["zone"] } })],
    ["a number", pod({ spec: { nodeSelector: 17 } })],
    ["a spec that is a string", { ...pod(), spec: "x" }],
    ["a spec that is a list", { ...pod(), spec: [] }],
  ])("nodeSelector: %s", (_what, sent) => {
    const { answer, evaluation } = placed([SHOP, policy({ zone: "a" })], sent);
    expect(answer).toMatchObject({ allowed: true, patch: [] });
    expect(answer.warnings).toEqual(["nodeSelector is not an object here"]);
    expect(evaluation.findings).toMatchObject([{ outcome: "failed" }]);
  });

  test("a pod's value that is not a string stays, and is reported", () => {
    const { answer } = placed(
      [SHOP, policy({ zone: "a" })],
      pod({ spec: { nodeSelector: { zone: { deep: true } } } }),
    );
    expect(answer).toMatchObject({ allowed: true, patch: [] });
    expect(answer.warnings).toHaveLength(1);
  });

  test("a spec that is null gets one", () => {
    const { answer } = placed([SHOP, policy({ zone: "a" })], { ...pod(), spec: null });
    expect(answer.patch).toContainEqual({
      op: "replace",
      path: "/spec",
      value: { nodeSelector: { zone: "a" } },
    });
  });

  test.each<[string, JsonObject]>([
    ["no template", { ...deployment(), spec: {} }],
    ["a template that is a string", { ...deployment(), spec: { template: "x" } }],
    ["a spec that is null", { ...deployment(), spec: null }],
    ["no spec", { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", namespace: "shop" } }],
    [
      "a ReplicationController, which need not have one",
      {
        apiVersion: "v1",
        kind: "ReplicationController",
        metadata: { name: "web", namespace: "shop" },
        spec: {},
      },
    ],
  ])("template: %s", (_what, sent) => {
    expect(placed([SHOP, policy({ zone: "a" })], sent).answer).toMatchObject({
      allowed: true,
      patch: [],
      warnings: [],
    });
  });

  test.each<[string, Json]>([
    ["a list", ["app"]],
    ["a text", "app=web"],
    ["null", null],
    ["values that are not strings", { app: 1, tier: null, x: { deep: [] } }],
    ["__proto__", JSON.parse('{"__proto__": "x", "constructor": "y"}')],
  ])("labels: %s", (_what, labels) => {
    const all = placed([SHOP, policy({ zone: "a" })], pod({ labels }));
    expect(all.nodeSelector).toEqual({ zone: "a" });
    const some = placed(
      [
        SHOP,
        policy({ zone: "a" }, "p", {
          podSelector: { matchExpressions: [{ key: "app", operator: "Exists" }] },
        }),
      ],
      pod({ labels }),
    );
    expect(some.answer).toMatchObject({ allowed: true, patch: [] });
  });
});
