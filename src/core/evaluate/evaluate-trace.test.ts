import { describe, expect, test } from "vitest";
import { ask, assemblyOf, atOnce, callOf } from "../../../test/builders/evaluation.ts";
import { kindOf } from "../../../test/builders/kind.ts";
import { moduleThat } from "../../../test/builders/module.ts";
import { outside } from "../../../test/builders/outside.ts";
import { pod } from "../../../test/builders/pod.ts";
import { requestFor } from "../../../test/builders/request.ts";
import { allow, need } from "../decision/decision.ts";
import type { Module } from "../module/module.ts";
import type { PolicyRef } from "../policy/policy-ref.ts";
import { evaluate } from "./evaluate.ts";

const LEFT: PolicyRef = { kind: "LeftPolicy", name: "l" };
const RIGHT: PolicyRef = { kind: "RightPolicy", namespace: "shop", name: "r" };

describe("trace", () => {
  const traced = moduleThat("traced", {
    mutate: ({ trace }) => {
      trace?.({ policy: LEFT, applies: "applies", why: "it does" });
      return allow();
    },
  });

  test("is recorded only if requested", () => {
    expect(atOnce(ask([traced], requestFor(pod()))).trace).toEqual([]);
    expect(atOnce(ask([traced], requestFor(pod()), outside(), { trace: true })).trace).toEqual([
      { module: "traced", policy: LEFT, applies: "applies", why: "it does" },
    ]);
  });

  test("a round that is repeated is traced once", async () => {
    const asks = moduleThat("asks", {
      mutate: ({ facts, trace }) => {
        trace?.({ policy: RIGHT, applies: "not", why: "no" });
        const one = { get: { resource: "nodes", name: "n" } };
        return facts.of(one) === undefined ? need(one) : allow();
      },
    });
    const evaluation = await ask([traced, asks], requestFor(pod()), outside(), { trace: true });
    expect(evaluation.trace.map(({ module }) => module)).toEqual(["traced", "asks"]);
  });

  test("an unusable policy is traced, although its module never saw it", () => {
    const kind = kindOf("test.example", "Rule", {
      prepare: (object) => ({
        policy: undefined,
        problems: object["bad"] === true ? [{ path: ["spec"], message: "is wrong", severity: "error" }] : [],
      }),
    });
    const module: Module = { ...traced, kinds: [kind] };
    const assembly = assemblyOf([module]);
    assembly.apply(
      [true, false].map((bad) => ({
        resource: "rules.test.example",
        namespace: "",
        name: String(bad),
        object: { bad, metadata: { name: bad ? "bad" : "inert" } },
      })),
    );
    const { trace } = atOnce(evaluate(callOf(assembly, requestFor(pod()), { trace: true }), outside()));
    expect(trace.map(({ policy, applies, why }) => [policy.name, applies, why])).toEqual([
      ["l", "applies", "it does"],
      ["bad", "failed", "the policy is not valid: spec: is wrong"],
      ["inert", "not", "the policy selects nothing"],
    ]);
  });
});
