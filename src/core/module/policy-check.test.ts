import { describe, expect, test } from "vitest";
import { z } from "zod";
import { assemblyOf, atOnce, callOf } from "../../../test/builders/evaluation.ts";
import { kindOf } from "../../../test/builders/kind.ts";
import { moduleThat } from "../../../test/builders/module.ts";
import { outside } from "../../../test/builders/outside.ts";
import { requestFor } from "../../../test/builders/request.ts";
import type { AdmissionRequest } from "../decision/request.ts";
import { evaluate } from "../evaluate/evaluate.ts";
import { responseOf } from "../evaluate/response.ts";
import { DEFAULT_INSTALLATION } from "../installation/installation.ts";
import type { Json, JsonObject } from "../json.ts";
import { at } from "../json.ts";
import type { Kind } from "../policy/kind.ts";
import { problem, warningProblem } from "../policy/problem.ts";
import { policyCheck } from "./policy-check.ts";

const KIND = kindOf("test.example", "Rule", {
  versions: [
    {
      name: "v1",
      storage: true,
      spec: z.strictObject({
        level: z.int().optional(),
        items: z.array(z.strictObject({ name: z.string() })).optional(),
      }),
    },
  ],
  check: (object) =>
    at(object, "spec", "level") === 13 ? [problem(["spec", "level"], "brings bad luck")] : [],
});
const FILE: Kind = { ...KIND, kind: "Settings", plural: "settings", standing: "file" };
const OTHER: Kind = { ...KIND, kind: "Thing", plural: "things", group: "other.example" };

const declared = { ...moduleThat("declared", {}), kinds: [KIND, FILE, OTHER] };
const module = policyCheck([declared]);

const rule = (spec: Json | undefined, change: JsonObject = {}): JsonObject => ({
  apiVersion: "test.example/v1",
  kind: "Rule",
  metadata: { name: "r" },
  ...(spec === undefined ? {} : { spec }),
  ...change,
});

function judge(request: AdmissionRequest) {
  const call = callOf(assemblyOf([module]), request, { phase: "validate" });
  return responseOf(atOnce(evaluate(call, outside())));
}

test("the hook covers the declared resources of modules, and is fail-open", () => {
  expect(assemblyOf([module]).hooks).toMatchObject([
    {
      phase: "validate",
      failure: "open",
      sideEffects: "None",
      rules: [
        {
          groups: ["test.example"],
          versions: ["v1"],
          resources: ["rules"],
          operations: ["CREATE", "UPDATE"],
        },
        {
          groups: ["other.example"],
          versions: ["v1"],
          resources: ["things"],
          operations: ["CREATE", "UPDATE"],
        },
      ],
    },
  ]);
  expect(assemblyOf([policyCheck([])]).hooks).toEqual([]);
});

describe("refused", () => {
  test.each<[string, JsonObject, field: string]>([
    ["a wrong type", rule({ level: "high" }), "spec.level"],
    ["a wrong type inside", rule({ items: [{ name: "a" }, { name: 1 }] }), "spec.items[1].name"],
    ["a missing field", rule({ items: [{}] }), "spec.items[0].name"],
    ["an invalid spec", rule("x"), "spec"],
    ["a mistake that only its module detects", rule({ level: 13 }), "spec.level"],
    ["no name", rule({}, { metadata: {} }), "metadata.name"],
    ["a bad name", rule({}, { metadata: { name: "No_Name" } }), "metadata.name"],
  ])("rejects %s, with the field", (_what, object, field) => {
    const answer = judge(requestFor(object));
    expect(answer).toMatchObject({ allowed: false, status: { code: 422, reason: "Invalid" } });
    expect(answer.status?.causes.map((cause) => cause.field)).toContain(field);
    expect(answer.status?.causes[0]?.reason).toBe("USHER-E04");
    expect(answer.status?.message).toContain("USHER-E04");
    expect(answer.status?.message).toContain(field);
  });

  test("rejects an object whose version differs from the request's", () => {
    const { resource } = requestFor(rule({}));
    const answer = judge(requestFor(rule({}, { apiVersion: "test.example/v9" }), { resource }));
    expect(answer.status?.causes).toMatchObject([{ field: "apiVersion" }]);
  });

  test("reports all problems at once, with the generated name", () => {
    const object = rule({ level: "x", items: [{}] }, { metadata: { generateName: "gen-" } });
    const { status } = judge(requestFor(object));
    expect(status?.causes).toHaveLength(2);
    expect(status?.message).toMatch(/^Rule gen-\* is not valid: /);
  });
});

describe("allowed", () => {
  test("accepts without warnings", () => {
    for (const object of [rule({}), rule(undefined), rule({ level: 1 })]) {
      expect(judge(requestFor(object))).toMatchObject({ allowed: true, warnings: [], status: undefined });
    }
  });

  test("warns about an unknown field, with a suggestion", () => {
    const answer = judge(requestFor(rule({ levle: 3 })));
    expect(answer.allowed).toBe(true);
    expect(answer.warnings).toHaveLength(1);
    expect(answer.warnings[0]).toMatch(/^spec\.levle: .*did you mean "level"\?/);
  });

  test("a module sees the target installation", () => {
    const placed: Kind = {
      ...KIND,
      check: (_object, _view, installation) => [
        warningProblem(["metadata"], `in ${installation?.namespace}`),
      ],
    };
    const checking = policyCheck([{ ...moduleThat("declared", {}), kinds: [placed] }]);
    const assembly = assemblyOf([checking], [], { ...DEFAULT_INSTALLATION, namespace: "ours" });
    const call = callOf(assembly, requestFor(rule({})), { phase: "validate" });
    const { allowed, warnings } = responseOf(atOnce(evaluate(call, outside())));
    expect({ allowed, warnings }).toEqual({ allowed: true, warnings: [expect.stringMatching(/in ours/)] });
  });

  test("also reports an unknown field beside an error", () => {
    const answer = judge(requestFor(rule({ levle: 3, level: 13 })));
    expect(answer.warnings.join()).toContain("spec.levle");
  });

  test.each<[string, JsonObject]>([
    ["labels", { metadata: { name: "r", labels: { a: "b" } } }],
    ["a removed finalizer", { metadata: { name: "r", finalizers: [] } }],
    ["nothing", {}],
  ])("accepts an UPDATE of %s, of a policy that became invalid", (_what, change) => {
    const old = rule({ level: 13 }, { metadata: { name: "r", finalizers: ["x/y"] } });
    const answer = judge(requestFor(rule({ level: 13 }, change), { operation: "UPDATE", oldObject: old }));
    expect(answer.allowed).toBe(true);
  });

  test("rejects an UPDATE that changes its spec", () => {
    const old = rule({ level: 13 });
    const now = rule({ level: 13, items: [] });
    expect(judge(requestFor(now, { operation: "UPDATE", oldObject: old })).allowed).toBe(false);
  });

  test("ignores other kinds, and requests without an object", () => {
    const unknown = { ...rule({ level: "x" }), kind: "Setting", apiVersion: "test.example/v1" };
    expect(judge(requestFor(unknown)).allowed).toBe(true);
    expect(judge(requestFor(rule({ level: "x" }), { object: undefined })).allowed).toBe(true);
  });
});

test("a check gets the time of the write", () => {
  const clocked: Kind = {
    ...KIND,
    check: (_object, _view, _installation, now) => [warningProblem(["spec"], `written at ${now}`)],
  };
  const policies = policyCheck([{ ...moduleThat("declared", {}), kinds: [clocked] }]);
  const call = callOf(assemblyOf([policies]), requestFor(rule({})), { phase: "validate", now: 42 });
  expect(responseOf(atOnce(evaluate(call, outside()))).warnings).toEqual(["spec: written at 42"]);
});
