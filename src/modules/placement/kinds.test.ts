import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { assemblyOf, atOnce, callOf } from "../../../test/builders/evaluation.ts";
import { outside } from "../../../test/builders/outside.ts";
import { clusterPolicy, namespacedPolicy } from "../../../test/builders/policy.ts";
import { BAD_SPECS, GOOD_SPECS } from "../../../test/builders/policy-table.ts";
import { requestFor } from "../../../test/builders/request.ts";
import type { AdmissionRequest } from "../../core/decision/request.ts";
import { evaluate } from "../../core/evaluate/evaluate.ts";
import { responseOf } from "../../core/evaluate/response.ts";
import { type Json, type JsonObject, stringAt } from "../../core/json.ts";
import { policyCheck } from "../../core/module/policy-check.ts";
import { placement } from "./index.ts";

const checker = assemblyOf([policyCheck([placement])]);

/** The API server's result when this policy is written. */
function written(object: JsonObject, change: Partial<AdmissionRequest> = {}) {
  const call = callOf(checker, requestFor(object, change), { phase: "validate" });
  return responseOf(atOnce(evaluate(call, outside())));
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
    "%s: a field without effect is reported",
    (file) => {
      const warnings = written(sample(file)).warnings.join("\n");
      expect(warnings).toContain("spec.foo");
      expect(warnings).toContain("selects nothing");
    },
  );
});

const OK = { namespaceSelector: {}, podSelector: {} };

describe("refused, with the field", () => {
  test.each(BAD_SPECS)("%s", (_what, spec, field) => {
    const { namespaceSelector: _own, ...namespaced } = spec;
    const objects = [
      clusterPolicy("p", spec),
      ...(field.includes("spec.namespaceSelector") ? [] : [namespacedPolicy("shop", "p", namespaced)]),
    ];
    for (const object of objects) {
      const { status } = written(object);
      expect(status?.code).toBe(422);
      expect(status?.causes.map((cause) => cause.field)).toContain(field);
    }
  });

  test.each<[string, Json, string]>([
    [
      "an unknown selector field: without it all would be selected",
      { ...OK, podSelector: { matchLabel: { a: "b" } } },
      "spec.podSelector.matchLabel",
    ],
    ["a spec that is a list", [], "spec"],
  ])("%s", (_what, spec, field) => {
    const { status } = written({ ...clusterPolicy("p", {}), spec });
    expect(status?.code).toBe(422);
    expect(status?.causes.map((cause) => cause.field)).toContain(field);
  });

  test("a policy that became invalid can still lose its finalizer, and is validated once its spec changes", () => {
    const bad = clusterPolicy("p", { ...OK, nodeSelector: { "-": "x" } }, { finalizers: ["example.com/x"] });
    const freed = { ...bad, metadata: { name: "p", labels: { touched: "yes" } } };
    const update = (object: JsonObject) => written(object, { operation: "UPDATE", oldObject: bad });
    expect(update(freed)).toMatchObject({ allowed: true, warnings: [] });
    expect(update(clusterPolicy("p", { ...OK, nodeSelector: { "-": "x" }, priority: 1 })).allowed).toBe(
      false,
    );
  });
});

describe("accepted", () => {
  test.each(GOOD_SPECS)("%s is accepted without a warning", (_what, spec) => {
    expect(written(clusterPolicy("p", spec))).toMatchObject({ allowed: true, warnings: [] });
  });

  test.each<[string, JsonObject, readonly string[]]>([
    ["no podSelector", { namespaceSelector: {} }, ["spec.podSelector: is missing"]],
    ["a null podSelector", { namespaceSelector: {}, podSelector: null }, ["spec.podSelector: is missing"]],
    ["neither selector", {}, ["spec.podSelector: is missing", "spec.namespaceSelector: is missing"]],
    ["no criteria", OK, ["spec: has no scheduling criteria"]],
    [
      "a node and criteria that only a scheduler reads",
      { ...OK, nodeName: "n", schedulerName: "s", nodeSelector: { a: "b" } },
      ["schedulerName has no effect", "a node that does not match nodeSelector"],
    ],
    [
      "the same toleration in two spellings",
      {
        ...OK,
        tolerations: [
          { key: "a", value: "b" },
          { key: "a", operator: "Equal", value: "b" },
        ],
      },
      ["spec.tolerations[1]: means the same as [0]"],
    ],
    [
      "a demand for preferences",
      {
        ...OK,
        enforcement: "Refuse",
        affinity: {
          nodeAffinity: { preferredDuringSchedulingIgnoredDuringExecution: [{ weight: 1, preference: {} }] },
        },
      },
      ["spec.enforcement: has no effect"],
    ],
    [
      "an empty term",
      {
        ...OK,
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: {
              nodeSelectorTerms: [{}, { matchExpressions: [{ key: "a", operator: "Exists" }] }],
            },
          },
        },
      },
      ["nodeSelectorTerms[0]: is empty"],
    ],
    ["a slip of the finger", { ...OK, nodeSelecter: {} }, ['did you mean "nodeSelector"?']],
  ])("%s is accepted with a warning", (_what, spec, expected) => {
    const answer = written(clusterPolicy("p", spec));
    expect(answer.allowed).toBe(true);
    for (const text of expected) expect(answer.warnings.join("\n")).toContain(text);
  });

  test("a namespaced policy needs no namespaceSelector, and has none", () => {
    const spec = { podSelector: {}, nodeSelector: { a: "b" } };
    expect(written(namespacedPolicy("shop", "p", spec)).warnings).toEqual([]);
    const answer = written(namespacedPolicy("shop", "p", { ...spec, namespaceSelector: {} }));
    expect(answer.warnings.join()).toContain("spec.namespaceSelector");
  });

  test("without a spec", () => {
    const { spec: _spec, ...bare } = clusterPolicy("p", {});
    expect(written(bare)).toMatchObject({ allowed: true });
  });
});

test.each<[string | undefined, boolean]>([
  [undefined, false],
  ["Fail", false],
  ["Ignore", true],
])(
  "with enforcement Refuse and failurePolicy %s: a warning when it is written: %s",
  (failurePolicy, warns) => {
    const spec = {
      ...OK,
      nodeSelector: { pool: "a" },
      enforcement: "Refuse",
      ...(failurePolicy === undefined ? {} : { failurePolicy }),
    };
    const { allowed, warnings } = written(clusterPolicy("p", spec));
    expect(allowed).toBe(true);
    expect(warnings.join().includes("spec.failurePolicy: Ignore admits objects")).toBe(warns);
  },
);
