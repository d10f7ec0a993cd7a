import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { assemblyOf, atOnce, callOf } from "../../../test/builders/evaluation.ts";
import { outside } from "../../../test/builders/outside.ts";
import { clusterPolicy, namespacedPolicy } from "../../../test/builders/policy.ts";
import { requestFor } from "../../../test/builders/request.ts";
import { answerOf } from "../../core/answer.ts";
import { evaluate } from "../../core/evaluate.ts";
import { type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { policyCheck } from "../../core/policy-check.ts";
import { placement } from "./index.ts";

const checker = assemblyOf([policyCheck([placement])]);

/** What the API server would be told when this policy is written. */
function written(object: JsonObject) {
  const call = callOf(checker, requestFor(object), { phase: "validate" });
  return answerOf(atOnce(evaluate(call, outside())));
}

const samples = join(import.meta.dirname, "..", "..", "..", "test", "fixtures", "kupid");
const files = readdirSync(samples).sort();
const sample = (file: string): JsonObject => parse(readFileSync(join(samples, file), "utf8"));

describe("kupid's samples", () => {
  test("are here, with the name that two of them share", () => {
    expect(files.length).toBeGreaterThanOrEqual(19);
    const names = files.map((file) => {
      const object = sample(file);
      return `${stringAt(object, "kind")} ${stringAt(object, "metadata", "name")}`;
    });
    expect(names.length - new Set(names).size).toBe(1);
  });

  test.each(files)("%s is accepted", (file) => {
    const answer = written(sample(file));
    expect(answer.status).toBeUndefined();
    expect(answer.allowed).toBe(true);
  });

  test.each(files.filter((file) => file.startsWith("kubebuilder")))(
    "%s: what has no effect is told",
    (file) => {
      const warnings = written(sample(file)).warnings.join("\n");
      expect(warnings).toContain("spec.foo");
      expect(warnings).toContain("selects nothing");
    },
  );
});

const OK = { namespaceSelector: {}, podSelector: {} };

describe("refused, with the field", () => {
  test.each<[string, Json, string]>([
    [
      "a bad key in matchLabels",
      { ...OK, podSelector: { matchLabels: { "a b": "x" } } },
      "spec.podSelector.matchLabels[a b]",
    ],
    [
      "a bad value in matchLabels",
      { ...OK, podSelector: { matchLabels: { a: "x y" } } },
      "spec.podSelector.matchLabels.a",
    ],
    [
      "In without values",
      { ...OK, namespaceSelector: { matchExpressions: [{ key: "a", operator: "In" }] } },
      "spec.namespaceSelector.matchExpressions[0].values",
    ],
    [
      "Exists with values",
      { ...OK, podSelector: { matchExpressions: [{ key: "a", operator: "Exists", values: ["x"] }] } },
      "spec.podSelector.matchExpressions[0].values",
    ],
    [
      "an unknown operator",
      { ...OK, podSelector: { matchExpressions: [{ key: "a", operator: "Exist" }] } },
      "spec.podSelector.matchExpressions[0].operator",
    ],
    [
      "a selector field that there is not: without it all would be selected",
      { ...OK, podSelector: { matchLabel: { a: "b" } } },
      "spec.podSelector.matchLabel",
    ],
    ["a bad nodeSelector key", { ...OK, nodeSelector: { "-x": "y" } }, "spec.nodeSelector.-x"],
    ["a bad nodeSelector value", { ...OK, nodeSelector: { x: "-y" } }, "spec.nodeSelector.x"],
    ["a nodeSelector value that is no text", { ...OK, nodeSelector: { x: 1 } }, "spec.nodeSelector.x"],
    ["a nodeSelector that is a list", { ...OK, nodeSelector: ["x"] }, "spec.nodeSelector"],
    ["a selector that is a text", { ...OK, podSelector: "app=etcd" }, "spec.podSelector"],
    ["a priority that is a text", { ...OK, priority: "high" }, "spec.priority"],
    ["a priority out of bounds", { ...OK, priority: 2_000_000_000 }, "spec.priority"],
    ["another failurePolicy", { ...OK, failurePolicy: "fail" }, "spec.failurePolicy"],
    ["tolerations that are no list", { ...OK, tolerations: {} }, "spec.tolerations"],
    ["a spec that is a list", [], "spec"],
  ])("%s", (_what, spec, field) => {
    const { namespaceSelector: _own, ...namespaced } = {
      namespaceSelector: undefined,
      ...(spec as JsonObject),
    };
    const objects = [
      { ...clusterPolicy("p", {}), spec },
      ...(field.includes("namespaceSelector") || Array.isArray(spec)
        ? []
        : [namespacedPolicy("shop", "p", namespaced as JsonObject)]),
    ];
    for (const object of objects) {
      const { status } = written(object);
      expect(status?.code).toBe(422);
      expect(status?.causes.map((cause) => cause.field)).toContain(field);
    }
  });
});

describe("accepted", () => {
  test.each<[string, JsonObject]>([
    ["all empty", OK],
    [
      "nulls, which the API server takes for absent",
      { ...OK, nodeSelector: null, priority: null, affinity: null, tolerations: null },
    ],
    ["values", { ...OK, nodeSelector: { "a.b/c": "", d: "e" }, priority: -5, failurePolicy: "Fail" }],
  ])("%s, without a word", (_what, spec) => {
    expect(written(clusterPolicy("p", spec))).toMatchObject({ allowed: true, warnings: [] });
  });

  test.each<[string, JsonObject, readonly string[]]>([
    ["no podSelector", { namespaceSelector: {} }, ["spec.podSelector: is missing"]],
    ["a null podSelector", { namespaceSelector: {}, podSelector: null }, ["spec.podSelector: is missing"]],
    ["neither selector", {}, ["spec.podSelector: is missing", "spec.namespaceSelector: is missing"]],
    ["what this version does not apply", { ...OK, nodeName: "n" }, ["spec.nodeName: is not applied"]],
    ["a slip of the finger", { ...OK, nodeSelecter: {} }, ['did you mean "nodeSelector"?']],
  ])("%s, with a warning", (_what, spec, expected) => {
    const answer = written(clusterPolicy("p", spec));
    expect(answer.allowed).toBe(true);
    for (const text of expected) expect(answer.warnings.join("\n")).toContain(text);
  });

  test("a namespaced policy needs no namespaceSelector, and has none", () => {
    expect(written(namespacedPolicy("shop", "p", { podSelector: {} })).warnings).toEqual([]);
    const answer = written(namespacedPolicy("shop", "p", { podSelector: {}, namespaceSelector: {} }));
    expect(answer.warnings.join()).toContain("spec.namespaceSelector");
  });

  test("without a spec", () => {
    const { spec: _spec, ...bare } = clusterPolicy("p", {});
    expect(written(bare)).toMatchObject({ allowed: true });
  });
});
