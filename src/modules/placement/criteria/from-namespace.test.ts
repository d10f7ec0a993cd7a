import { describe, expect, it, test } from "vitest";
import { outside } from "../../../../test/builders/outside.ts";
import { placed, placedWith } from "../../../../test/builders/placed.ts";
import { clusterPolicy, namespace } from "../../../../test/builders/policy.ts";
import { effectsOf } from "../../../core/evaluate/effects.ts";
import { at, type Json, type JsonObject } from "../../../core/json.ts";
import { checkObject } from "../../../core/policy/check.ts";
import { Store } from "../../../core/view/store.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "../kinds.ts";

const TEAM = { label: "team" };
const POD: JsonObject = {
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "p", namespace: "shop", labels: {} },
  spec: { containers: [{ name: "c", image: "c:1" }] },
};

const policy = (spec: JsonObject) =>
  clusterPolicy("teams", { namespaceSelector: {}, podSelector: {}, ...spec });
const specOf = (spec: JsonObject, shop = namespace("shop", { team: "red" })) =>
  at(placed([policy(spec), shop], POD).object, "spec") as JsonObject;
const REQUIRED = [
  "affinity",
  "nodeAffinity",
  "requiredDuringSchedulingIgnoredDuringExecution",
  "nodeSelectorTerms",
];

describe("values from the namespace", () => {
  it("become values of nodeSelector, beside those of the policy", () => {
    const { nodeSelector } = specOf({
      nodeSelector: { os: "linux" },
      fromNamespace: { nodeSelector: { pool: TEAM } },
    });
    expect(nodeSelector).toEqual({ os: "linux", pool: "red" });
  });

  it("become a requirement of every term of the policy, or a term", () => {
    const red = { key: "pool", operator: "In", values: ["red"] };
    const added = { fromNamespace: { nodeAffinity: [{ key: "pool", ...TEAM }] } };
    expect(at(specOf(added), ...REQUIRED)).toEqual([{ matchExpressions: [red] }]);
    const zone = (value: string): JsonObject => ({
      matchExpressions: [{ key: "zone", operator: "In", values: [value] }],
    });
    const terms = { nodeSelectorTerms: [zone("a"), zone("b")] };
    const affinity = { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: terms } };
    expect(at(specOf({ affinity, ...added }), ...REQUIRED)).toEqual(
      ["a", "b"].map((value) => ({
        matchExpressions: [...(zone(value)["matchExpressions"] as Json[]), red],
      })),
    );
  });

  it("become tolerations", () => {
    const { tolerations } = specOf({
      fromNamespace: { tolerations: [{ key: "team", effect: "NoSchedule", ...TEAM }] },
    });
    expect(tolerations).toEqual([{ key: "team", operator: "Equal", value: "red", effect: "NoSchedule" }]);
  });

  it("may be annotations", () => {
    const shop = {
      ...namespace("shop"),
      metadata: { name: "shop", annotations: { "example.com/pool": "blue" } },
    };
    const from = { nodeSelector: { pool: { annotation: "example.com/pool" } } };
    expect(specOf({ fromNamespace: from }, shop)["nodeSelector"]).toEqual({ pool: "blue" });
  });

  test.each([
    ["has no label team", namespace("shop")],
    ["has no label team", namespace("shop", { team: "" })],
  ])("skip the whole policy where the namespace %s, and count it", (why, shop) => {
    const { object, evaluation, answer } = placed(
      [policy({ nodeSelector: { os: "linux" }, fromNamespace: { nodeSelector: { pool: TEAM } } }), shop],
      POD,
    );
    expect(at(object, "spec", "nodeSelector")).toBeUndefined();
    expect(answer).toMatchObject({ allowed: true, warnings: [] });
    expect(evaluation.findings).toMatchObject([{ outcome: "skipped", code: "USHER-P24" }]);
    expect(evaluation.findings[0]?.message).toContain(why);
    expect(effectsOf(evaluation).tallies).toMatchObject([{ outcomes: { matched: 1, skipped: 1 } }]);
  });

  it("skip the policy where an annotation can't be the value of a label", () => {
    const shop = { ...namespace("shop"), metadata: { name: "shop", annotations: { pool: "a b, c" } } };
    const { evaluation } = placed(
      [policy({ fromNamespace: { nodeSelector: { pool: { annotation: "pool" } } } }), shop],
      POD,
    );
    expect(evaluation.findings[0]?.message).toContain("is not the value of a label");
  });

  it("are explained by the trace", () => {
    const trace = (shop: JsonObject) =>
      placed([policy({ fromNamespace: { nodeSelector: { pool: TEAM } } }), shop], POD, { trace: true })
        .evaluation.trace;
    expect(trace(namespace("shop", { team: "red" }))).toMatchObject([
      { applies: "applies", why: "namespace shop (team=red), every pod" },
    ]);
    expect(trace(namespace("shop"))).toMatchObject([
      { applies: "not", why: "namespace shop has no label team" },
    ]);
  });

  test.each([
    ["Ignore", true],
    ["Fail", false],
  ])(
    "with failurePolicy %s, an object of an unknown namespace is admitted: %s",
    async (failurePolicy, allowed) => {
      const known = [policy({ fromNamespace: { nodeSelector: { pool: TEAM } }, failurePolicy })];
      const { answer } = await placedWith(outside(), known, POD);
      expect(answer.allowed).toBe(allowed);
    },
  );
});

describe("the check of a policy", () => {
  const problems = (spec: JsonObject, kind = clusterPodSchedulingPolicy) =>
    checkObject(kind, policy(spec), new Store(new Map()))
      .filter(({ severity, pruned }) => severity === "error" || pruned)
      .map(({ path, message }) => `${path.join(".")}: ${message}`)
      .join("; ");

  test.each<[string, Json, string]>([
    [
      "both sources",
      { nodeSelector: { pool: { label: "a", annotation: "b" } } },
      "either label or annotation",
    ],
    ["no source", { nodeSelector: { pool: {} } }, "either label or annotation"],
    ["nothing at all", {}, "must have nodeSelector, nodeAffinity or tolerations"],
    ["an unknown field", { nodeSelctor: { pool: TEAM } }, "nodeSelctor"],
    ["a key that is not a label key", { nodeSelector: { "a b": TEAM } }, "a b"],
    ["an entry without a key", { tolerations: [TEAM] }, "key"],
    ["an operator", { tolerations: [{ key: "a", operator: "Exists", ...TEAM }] }, "operator"],
    ["a list in place of a map", { nodeSelector: [TEAM] }, "nodeSelector"],
    [
      "more entries than the CRD allows",
      { tolerations: Array.from({ length: 17 }, (_, i) => ({ key: `k${i}`, ...TEAM })) },
      "at most 16",
    ],
  ])("refuses %s", (_, fromNamespace, message) => {
    expect(problems({ fromNamespace })).toContain(message);
  });

  it("refuses a key that the policy sets itself", () => {
    expect(
      problems({ nodeSelector: { pool: "x" }, fromNamespace: { nodeSelector: { pool: TEAM } } }),
    ).toContain("is set by spec.nodeSelector as well");
  });

  it("accepts a policy that has only values from the namespace, without a warning", () => {
    const found = checkObject(
      clusterPodSchedulingPolicy,
      policy({ fromNamespace: { nodeSelector: { pool: TEAM } } }),
      new Store(new Map()),
    );
    expect(found.filter(({ message }) => message.includes("no scheduling criteria"))).toEqual([]);
    expect(found.filter(({ severity }) => severity === "error")).toEqual([]);
  });

  it("knows the field only in the kind of the whole cluster", () => {
    expect(problems({ fromNamespace: { nodeSelector: { pool: TEAM } } }, podSchedulingPolicy)).toContain(
      "fromNamespace",
    );
  });
});
