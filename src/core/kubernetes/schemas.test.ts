import { describe, expect, test } from "vitest";
import type { z } from "zod";
import type { Json } from "../json.ts";
import { nodeSelectorTerm } from "./schemas/node-affinity.ts";
import { podAffinityTerm } from "./schemas/pod-affinity.ts";
import {
  affinity,
  labelMap,
  labelSelector,
  nodeAffinity,
  toleration,
  topologySpreadConstraint,
} from "./schemas.ts";
import { compileSelector } from "./selectors/label-selector.ts";
import { compileNodeSelector } from "./selectors/node-selector.ts";

const LONG_KEY = `${"p".repeat(253)}/${"n".repeat(63)}`;

describe("accepted and refused", () => {
  const term = { topologyKey: "zone" };
  const spread = { maxSkew: 1, topologyKey: "zone", whenUnsatisfiable: "DoNotSchedule" };
  const cases: [string, z.ZodType, Json, boolean][] = [
    ["an empty selector", labelSelector, {}, true],
    ["a selector with an unknown field", labelSelector, { matchLabel: {} }, false],
    [
      "a key of full length",
      labelSelector,
      { matchExpressions: [{ key: LONG_KEY, operator: "Exists" }] },
      true,
    ],
    [
      "a longer one",
      labelSelector,
      { matchExpressions: [{ key: `${LONG_KEY}n`, operator: "Exists" }] },
      false,
    ],
    ["no object", labelSelector, [], false],
    ["a value of full length", labelMap, { a: "v".repeat(63) }, true],
    ["a longer one", labelMap, { a: "v".repeat(64) }, false],
    ["a label without a value", labelMap, { a: null }, false],
    [
      "as many labels as may be",
      labelMap,
      Object.fromEntries(Array.from({ length: 64 }, (_, i) => [i, ""])),
      true,
    ],
    ["an empty term", nodeSelectorTerm, {}, true],
    [
      "a node name as value",
      nodeSelectorTerm,
      { matchFields: [{ key: "metadata.name", operator: "In", values: ["n".repeat(253)] }] },
      true,
    ],
    [
      "weight 0",
      nodeAffinity,
      { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 0, preference: {} }] },
      false,
    ],
    [
      "no preference",
      nodeAffinity,
      { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1 }] },
      false,
    ],
    ["an empty affinity", affinity, {}, true],
    ["a pod term", podAffinityTerm, { ...term, matchLabelKeys: ["a"], mismatchLabelKeys: ["b"] }, true],
    ["a pod term without a place", podAffinityTerm, { labelSelector: {} }, false],
    ["a pod term with an empty place", podAffinityTerm, { topologyKey: "" }, false],
    ["an empty toleration", toleration, {}, true],
    ["the newer operators", toleration, { key: "a", operator: "Gt", value: "-9223372036854775808" }, true],
    ["an effect that does not exist", toleration, { effect: "NoEntry" }, false],
    [
      "a spread",
      topologySpreadConstraint,
      { ...spread, minDomains: 1, nodeAffinityPolicy: "Honor", nodeTaintsPolicy: "Ignore" },
      true,
    ],
    ["a spread that never spreads", topologySpreadConstraint, { ...spread, maxSkew: 0 }, false],
    ["a spread beyond an int32", topologySpreadConstraint, { ...spread, maxSkew: 2 ** 31 }, false],
  ];
  test.each(cases)("%s", (_name, schema, value, accepted) => {
    expect(schema.safeParse(value).success).toBe(accepted);
  });
});

describe("the operators are those of the matching functions", () => {
  const words = ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Equal", "in", ""];
  const values = (operator: string) => (operator.includes("Exist") ? {} : { values: ["1"] });
  test.each(words)("%j", (operator) => {
    const term = { matchExpressions: [{ key: "a", operator, ...values(operator) }] };
    expect(labelSelector.safeParse(term).success).toBe(compileSelector(term, []).problems.length === 0);
    const terms = { nodeSelectorTerms: [term] };
    expect(nodeSelectorTerm.safeParse(term).success).toBe(
      compileNodeSelector(terms, []).problems.length === 0,
    );
  });
});
