import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { clusterPolicy } from "../../../../test/builders/policy.ts";
import { fieldsOf } from "../../../../test/builders/wants.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import type { Problem } from "../../../core/policy/problem.ts";
import { parseCriteria } from "../criteria/criteria.ts";
import { ComparedPod, unmetRequirements } from "../criteria/unmet.ts";
import { sizeOf } from "../criteria/work-limit.ts";
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
    expect(fieldsOf(policy?.criteria ?? []).nodeSelector).toEqual([
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

  test("required labels are those of the selectors", () => {
    const { policy } = prepared({
      namespaceSelector: { matchLabels: { team: "red" } },
      podSelector: {
        matchExpressions: [
          { key: "app", operator: "Exists" },
          { key: "x", operator: "DoesNotExist" },
        ],
      },
    });
    expect(policy?.requiredLabels).toEqual([
      { of: "pod", key: "app", values: undefined },
      { of: "namespace", key: "team", values: ["red"] },
    ]);
    expect(prepared({ podSelector: {} }, "Namespaced").policy?.requiredLabels).toEqual([
      { of: "namespace", key: "kubernetes.io/metadata.name", values: ["shop"] },
    ]);
  });

  test.each<Json>([null, "x", 1, [], { podSelector: null }, { podSelector: { matchLabels: 1 } }])(
    "%j is unusable",
    (spec) => {
      expect(prepared(spec).policy).toBeUndefined();
      expect(prepared(spec, "Namespaced").policy).toBeUndefined();
    },
  );

  test("all problems are found, and the policy is marked invalid", () => {
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
      namespaceSelectorKey: undefined,
      podSelector: undefined,
      broken: undefined,
      criteria: [],
      size: sizeOf(1),
      fromNamespace: undefined,
      targets: "Both",
      onUpdate: "Restore",
      onConflict: "Skip",
      enforcement: "None",
      requiredLabels: [],
    })),
  );
  for (const a of policies) {
    for (const b of policies) {
      if (a !== b) expect(Math.sign(comparePolicies(a, b))).toBe(-Math.sign(comparePolicies(b, a)));
    }
  }
});

describe("any spec", () => {
  const FIELDS = [
    "podSelector",
    "namespaceSelector",
    "nodeSelector",
    "nodeName",
    "schedulerName",
    "affinity",
    "tolerations",
    "topologySpreadConstraints",
    "priorityClassName",
    "runtimeClassName",
    "schedulingGates",
    "targets",
    "onUpdate",
    "onConflict",
    "enforcement",
    "failurePolicy",
    "priority",
  ];
  const inside = fc.constantFrom(
    "nodeAffinity",
    "podAffinity",
    "podAntiAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
    "nodeSelectorTerms",
    "matchExpressions",
    "matchFields",
    "matchLabels",
    "key",
    "operator",
    "values",
    "weight",
    "preference",
    "podAffinityTerm",
    "labelSelector",
    "topologyKey",
    "matchLabelKeys",
    "mismatchLabelKeys",
    "name",
    "maxSkew",
    "__proto__",
  );
  const { json } = fc.letrec<{ json: Json }>((tie) => ({
    json: fc.oneof(
      { depthSize: "medium", withCrossShrink: true },
      fc.constantFrom<Json>(null, true, 0, 1.5, -1, "", "a", "In", "Gt", "Exists", "NoExecute"),
      fc.array(tie("json"), { maxLength: 3 }),
      fc.dictionary(inside, tie("json"), { maxKeys: 4 }) as fc.Arbitrary<Json>,
    ),
  }));
  const spec = fc.dictionary(fc.constantFrom(...FIELDS), json, { maxKeys: 6 }) as fc.Arbitrary<JsonObject>;

  test("never throws, and a policy with an error is marked invalid", () => {
    fc.assert(
      fc.property(spec, fc.constantFrom("Cluster" as const, "Namespaced" as const), (written, scope) => {
        const { policy, problems } = prepared(written, scope);
        const errors = problems.filter(({ severity }) => severity === "error");
        if (policy !== undefined) expect(policy.broken !== undefined).toBe(errors.length > 0);
        for (const { path } of errors) expect(path[0]).toBe("spec");
      }),
      { numRuns: 2_000 },
    );
  });

  test("requirements can be checked against any spec", () => {
    fc.assert(
      fc.property(spec, spec, (written, pod) => {
        const criteria = parseCriteria(written, []);
        expect(() => unmetRequirements(criteria, new ComparedPod(pod))).not.toThrow();
      }),
      { numRuns: 1_000 },
    );
  });

  test("nulls and absent lists take no memory, so that policies stay small", () => {
    const problems: Problem[] = [];
    const criteria = parseCriteria(
      {
        affinity: { nodeAffinity: {} },
        schedulingGates: [],
        tolerations: [{ key: "a", value: null, operator: "Exists" }],
      },
      problems,
    );
    expect(problems).toEqual([]);
    expect(fieldsOf(criteria)).toEqual({ tolerations: [{ key: "a", operator: "Exists" }] });
  });
});

test.each<[string | undefined, string | null | undefined, "Fail" | "Ignore"]>([
  ["Refuse", undefined, "Fail"],
  ["Refuse", null, "Fail"],
  ["Refuse", "Ignore", "Ignore"],
  ["Refuse", "Fail", "Fail"],
  ["Refuse", "Nonsense", "Ignore"],
  ["Warn", undefined, "Ignore"],
  ["None", "Fail", "Fail"],
  [undefined, undefined, "Ignore"],
])("with enforcement %s, failurePolicy %s counts as %s", (enforcement, failurePolicy, failure) => {
  const spec = { podSelector: {}, namespaceSelector: {}, enforcement, failurePolicy } as JsonObject;
  const { policy } = preparePolicy(clusterPolicy("p", spec), { kind: "", name: "p" }, "Cluster");
  expect(policy?.failure).toBe(failure);
});
