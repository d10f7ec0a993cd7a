import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { anyCriteria, anySpec } from "../../../../test/builders/criteria.ts";
import { merged, placementRequest } from "../../../../test/builders/merged.ts";
import { placed, SHOP } from "../../../../test/builders/placed.ts";
import { deployment, pod } from "../../../../test/builders/pod.ts";
import { clusterPolicy, namespacedPolicy } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import { StepCounter } from "../../../core/evaluate/step-counter.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import { MAX_STEPS, valuesIn, WorkBudget, WorkBudgets } from "./work-budget.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const many = <Item>(count: number, make: (i: number) => Item): Item[] =>
  Array.from({ length: count }, (_, i) => make(i));
const requiring = (count: number, ...expressions: ((term: number) => JsonObject)[]): JsonObject => ({
  affinity: {
    nodeAffinity: {
      [REQUIRED]: {
        nodeSelectorTerms: many(count, (t) => ({ matchExpressions: expressions.map((one) => one(t)) })),
      },
    },
  },
});
const is = (key: string, value: string): JsonObject => ({ key, operator: "In", values: [value] });
const isNot = (key: string, value: string): JsonObject => ({ key, operator: "NotIn", values: [value] });
/** Of 64 × 64 combinations 64 are possible, whatever was combined before. */
const diagonal = (p: number): JsonObject =>
  requiring(
    64,
    (t) => is("k", `v${t}`),
    () => isNot("p", `x${p}`),
  );
const labels = (p: string, value: string): JsonObject => ({
  nodeSelector: Object.fromEntries(many(64, (i) => [`k${p}-${i}`, value])),
});
const bears = (i: string, seconds?: number): JsonObject => ({
  key: i,
  operator: "Exists",
  effect: "NoExecute",
  ...(seconds === undefined ? {} : { tolerationSeconds: seconds }),
});
const inShop = (p: number, spec: JsonObject): JsonObject =>
  namespacedPolicy("shop", `d${String(p).padStart(4, "0")}`, { podSelector: {}, ...spec });

/** What a call costs in steps, with what it gives. */
function counted<Result>(call: (steps: StepCounter) => Result): {
  readonly steps: number;
  readonly result: Result;
} {
  const counter = new StepCounter();
  const result = call(counter);
  return { steps: counter.steps, result };
}

describe("what is done", () => {
  test("what is over stays over, and nothing is counted that is not done", () => {
    const { steps } = counted((counter) => {
      const budget = new WorkBudget(10, counter);
      expect(budget.spend(10)).toBe(true);
      expect(budget.exceeded).toBe(false);
      expect(budget.spend(1)).toBe(false);
      expect(budget.exceeded).toBe(true);
      expect(budget.spend(0)).toBe(false);
    });
    expect(steps).toBe(11);
  });

  test("policies of the cluster and of namespaces have a share each", () => {
    const budgets = new WorkBudgets(5);
    budgets.of({ namespace: "shop" }).spend(6);
    expect(budgets.of({ namespace: "shop" }).exceeded).toBe(true);
    expect(budgets.of({}).exceeded).toBe(false);
  });

  test("values are counted wherever they are", () => {
    expect(valuesIn({ a: [1, { b: null }], c: "x" })).toBe(6);
    expect(valuesIn(undefined)).toBe(1);
  });
});

describe("three hundred policies that are much work each", () => {
  const kinds: readonly [string, (p: number) => JsonObject, JsonObject?][] = [
    ["terms of which few go together", diagonal],
    ["the same for a pod with such terms", diagonal, diagonal(-1)],
    [
      "numbers",
      (p) =>
        requiring(
          64,
          (t) => ({ key: "n", operator: "Gt", values: [`${t}`] }),
          () => isNot("p", `x${p}`),
        ),
    ],
    ["terms that contradict those before", (p) => requiring(64, (t) => is("k", `v${p}-${t}`))],
    ["terms that are there already", () => diagonal(0)],
    [
      "one term that grows",
      (p) => ({
        affinity: {
          nodeAffinity: {
            [REQUIRED]: {
              nodeSelectorTerms: [{ matchExpressions: many(64, (i) => isNot(`k${p}-${i}`, "x")) }],
            },
          },
        },
      }),
    ],
    ["labels", (p) => labels(String(p), "v")],
    ["labels that contradict", (p) => labels("", `v${p}`)],
    [
      "labels against terms",
      (p) => labels("", `v${p}`),
      requiring(64, ...many(60, (i) => () => is(`k-${i}`, "w"))),
    ],
    ["tolerations that contradict", (p) => ({ tolerations: many(64, (i) => bears(`t${i}`, p)) })],
    ["tolerations that are there already", () => ({ tolerations: many(64, (i) => bears(`t${i}`)) })],
  ];

  test.each(kinds)("%s: as many steps as for a hundred", (_what, spec, own = {}) => {
    const policies = many(300, (p) => inShop(p, spec(p)));
    const hundred = counted((steps) =>
      placed([SHOP, ...policies.slice(0, 100)], pod({ spec: own }), { steps }),
    );
    const all = counted((steps) => placed([SHOP, ...policies], pod({ spec: own }), { steps }));
    expect(hundred.steps).toBeGreaterThan(MAX_STEPS);
    expect(all.steps).toBe(hundred.steps);
    // The one that it came to its end with may be somewhat more.
    expect(all.steps).toBeLessThan(1.25 * MAX_STEPS);
    const { answer, evaluation } = all.result;
    expect(answer.allowed).toBe(true);
    const left = evaluation.findings.filter(({ rule }) => rule === "criteria");
    expect(left.length).toBeGreaterThan(200);
    expect(new Set(left.map(({ code, outcome }) => `${code} ${outcome}`))).toEqual(
      new Set(["USHER-P12 failed"]),
    );
    expect(left.at(-1)?.policy?.name).toBe("d0299");
  });

  test("those that come first are applied, in any order of listing, and asked twice the same", () => {
    const policies = many(40, (p) => inShop(p, diagonal(p)));
    const first = placed([SHOP, ...policies], pod());
    const second = placed([SHOP, ...policies.toReversed()], pod());
    expect(second.answer).toEqual(first.answer);
    expect(second.object).toEqual(first.object);
    const applied = first.evaluation.findings.filter(({ outcome }) => outcome === "applied");
    expect(applied.map(({ policy }) => policy?.name)).toContain("d0000");
    expect(applied.length).toBeLessThan(40);
  });

  test("one with failurePolicy: Fail refuses what it can't be applied to", () => {
    const policies = many(40, (p) => inShop(p, diagonal(p)));
    const closed = inShop(999, { nodeSelector: { pool: "a" }, failurePolicy: "Fail" });
    const { answer } = placed([SHOP, ...policies, closed], pod());
    expect(answer).toMatchObject({ allowed: false, patch: [] });
    const first = inShop(999, { nodeSelector: { pool: "a" }, failurePolicy: "Fail", priority: 1 });
    expect(placed([SHOP, ...policies, first], pod()).answer.allowed).toBe(true);
  });

  test("a policy of the cluster is applied behind any number of those of the namespace", () => {
    const policies = many(40, (p) => inShop(p, { ...diagonal(p), priority: 5 }));
    const ofCluster = clusterPolicy("pool", {
      namespaceSelector: {},
      podSelector: {},
      nodeSelector: { pool: "a" },
      failurePolicy: "Fail",
    });
    const { answer, nodeSelector } = placed([SHOP, ...policies, ofCluster], pod());
    expect(answer.allowed).toBe(true);
    expect(nodeSelector).toEqual({ pool: "a" });
  });

  test("a reapply is not done by half", () => {
    const policies = many(40, (p) => inShop(p, diagonal(p)));
    const old = deployment({ metadata: { resourceVersion: "5" } });
    const asking = deployment({
      metadata: { resourceVersion: "5" },
      annotations: { "usher.dev/reapply": "now" },
    });
    const { answer, object, evaluation } = placed(
      [SHOP, ...policies],
      requestFor(asking, { operation: "UPDATE", oldObject: old }),
    );
    expect(answer.allowed).toBe(true);
    expect(evaluation.findings.map(({ code }) => code)).toContain("USHER-P22");
    expect(at(object, "spec", "template")).toEqual(at(old, "spec", "template"));
  });

  test("what a demand can't be compared with is taken for lacking", () => {
    const own = requiring(
      2_000,
      () => is("k", "v63"),
      () => is("p", "z"),
    );
    for (const [enforcement, allowed] of [
      ["Refuse", false],
      ["Warn", true],
    ] as const) {
      const policies = many(30, (p) => inShop(p, { ...diagonal(p), enforcement }));
      const { steps, result } = counted((counter) =>
        placed([SHOP, ...policies], pod({ spec: own }), { phase: "validate", steps: counter }),
      );
      expect(result.answer.allowed).toBe(allowed);
      expect(result.evaluation.findings).toHaveLength(30);
      expect(result.evaluation.findings.at(-1)).toMatchObject({ code: "USHER-P12", rule: "enforcement" });
      expect(steps).toBeLessThan(5 * MAX_STEPS);
    }
  });
});

describe("policies of ordinary size", () => {
  test("a hundred of them have room", () => {
    const policies = many(100, (p) =>
      inShop(p, {
        ...requiring(
          2,
          (t) => ({ key: "zone", operator: "In", values: [`z${t}`, "z9"] }),
          () => isNot("bad", `b${p % 5}`),
        ),
        tolerations: [bears(`t${p}`), bears("pool")],
        nodeSelector: { [`k${p}`]: "v" },
      }),
    );
    const { steps, result } = counted((counter) => placed([SHOP, ...policies], pod(), { steps: counter }));
    expect(result.evaluation.findings.filter(({ code }) => code === "USHER-P12")).toEqual([]);
    expect(steps).toBeLessThan(MAX_STEPS / 2);
  });

  test("where there is room, no limit gives the same", () => {
    let [roomy, over] = [0, 0];
    fc.assert(
      fc.property(
        anySpec,
        fc.array(anyCriteria, { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 0, max: 1_500 }),
        (spec, criteria, steps) => {
          const requests = criteria.map((one, i) => placementRequest(one, { name: `p${i}` }));
          const budget = new WorkBudget(steps);
          const limited = merged(pod({ spec }), requests, { budget });
          const free = merged(pod({ spec }), requests, { budget: new WorkBudget(Number.POSITIVE_INFINITY) });
          if (budget.exceeded) {
            over++;
            return;
          }
          roomy++;
          expect(limited).toEqual(free);
        },
      ),
      { numRuns: 300 },
    );
    expect(roomy).toBeGreaterThan(30);
    expect(over).toBeGreaterThan(30);
  });
});
