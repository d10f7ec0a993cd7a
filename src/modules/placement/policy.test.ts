import { describe, expect, test } from "vitest";
import { clusterPolicy } from "../../../test/builders/policy.ts";
import type { Json, JsonObject } from "../../core/json.ts";
import { comparePolicies, type PlacementPolicy, preparePolicy } from "./policy.ts";

const REF = { kind: "ClusterPodSchedulingPolicy", name: "p" };
const prepared = (spec: Json, scope: "Cluster" | "Namespaced" = "Cluster") =>
  preparePolicy(
    { ...clusterPolicy("p", {}), spec },
    scope === "Cluster" ? REF : { ...REF, namespace: "shop" },
    scope,
  );

describe("preparing", () => {
  test("nodeSelector keys are sorted, so that the patch does not depend on how they were written", () => {
    const { policy } = prepared({ namespaceSelector: {}, podSelector: {}, nodeSelector: { b: "2", a: "1" } });
    expect(policy?.nodeSelector).toEqual([
      ["a", "1"],
      ["b", "2"],
    ]);
  });

  test.each<[Json | undefined, number, string]>([
    [undefined, 0, "Ignore"],
    [null, 0, "Ignore"],
    [7, 7, "Ignore"],
    [1.5, 0, "Ignore"],
    ["7", 0, "Ignore"],
  ])("priority %j", (priority, expected) => {
    const spec: JsonObject = {
      namespaceSelector: {},
      podSelector: {},
      ...(priority === undefined ? {} : { priority }),
    };
    expect(prepared(spec).policy?.priority).toBe(expected);
  });

  test("what it demands is what it selects by", () => {
    const { policy } = prepared({
      namespaceSelector: { matchLabels: { team: "red" } },
      podSelector: {
        matchExpressions: [
          { key: "app", operator: "Exists" },
          { key: "x", operator: "DoesNotExist" },
        ],
      },
    });
    expect(policy?.demands).toEqual([
      { of: "pod", key: "app", values: undefined },
      { of: "namespace", key: "team", values: ["red"] },
    ]);
    expect(prepared({ podSelector: {} }, "Namespaced").policy?.demands).toEqual([
      { of: "namespace", key: "kubernetes.io/metadata.name", values: ["shop"] },
    ]);
  });

  test.each<Json>([null, "x", 1, [], { podSelector: null }, { podSelector: { matchLabels: 1 } }])(
    "nothing usable in %j",
    (spec) => {
      expect(prepared(spec).policy).toBeUndefined();
      expect(prepared(spec, "Namespaced").policy).toBeUndefined();
    },
  );

  test("all problems are found, and the policy says that it is broken", () => {
    const { policy, problems } = prepared({
      namespaceSelector: {},
      podSelector: { matchLabels: { "a b": "x" } },
      nodeSelector: { "-": "x", ok: 1 },
    });
    expect(problems.map(({ path }) => path.slice(0, 2).join("."))).toEqual([
      "spec.podSelector",
      "spec.nodeSelector",
      "spec.nodeSelector",
    ]);
    expect(policy?.broken).toBeDefined();
    expect(policy?.podSelector).toBeUndefined();
  });
});

test("the order is a total one: turned round it is the opposite", () => {
  const refs = [
    { kind: "C", name: "a" },
    { kind: "C", name: "b" },
    { kind: "P", name: "a", namespace: "x" },
    { kind: "P", name: "a", namespace: "y" },
    { kind: "P", name: "b", namespace: "x" },
  ];
  const policies: PlacementPolicy[] = [0, 1].flatMap((priority) =>
    refs.map((ref) => ({
      ref,
      priority,
      failure: "Ignore",
      namespaceSelector: undefined,
      podSelector: undefined,
      broken: undefined,
      nodeSelector: [],
      demands: [],
    })),
  );
  for (const a of policies) {
    for (const b of policies) {
      if (a !== b) expect(Math.sign(comparePolicies(a, b))).toBe(-Math.sign(comparePolicies(b, a)));
    }
  }
});
