import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { assemblyOf, atOnce, callOf } from "../../../../test/builders/evaluation.ts";
import { again } from "../../../../test/builders/json.ts";
import { outside } from "../../../../test/builders/outside.ts";
import { placed, SHOP } from "../../../../test/builders/placed.ts";
import { deployment, pod } from "../../../../test/builders/pod.ts";
import { came, clusterPolicy, namespacedPolicy } from "../../../../test/builders/policy.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import { ExecutedBlocks } from "../../../../test/support/executed-blocks.ts";
import { evaluate } from "../../../core/evaluate/evaluate.ts";
import type { Evaluation } from "../../../core/evaluate/evaluate-hooks.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import type { Phase } from "../../../core/module/hook.ts";
import { placement } from "../index.ts";
import { MAX_WORK, valuesIn, WorkLimit, WorkLimits, workOfMerge, workOfProduct } from "./work-limit.ts";

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

let blocks: ExecutedBlocks;
beforeAll(async () => {
  blocks = await ExecutedBlocks.start();
});
afterAll(() => blocks.stop());

/** The evaluation of an object, and how many blocks of code it ran; policies were prepared by one before. */
async function counted(
  policies: readonly JsonObject[],
  object: JsonObject,
  phase: Phase = "mutate",
): Promise<{ readonly blocks: number; readonly evaluation: Evaluation }> {
  const assembly = assemblyOf([placement], [SHOP, ...policies].map(came));
  const call = () => evaluate(callOf(assembly, requestFor(again(object)), { phase }), outside());
  atOnce(call());
  await blocks.take();
  const evaluation = atOnce(call());
  return { blocks: await blocks.take(), evaluation };
}

/** Selecting a policy and reporting that it was skipped. */
const BLOCKS_OF_SKIPPED = 700;
/** Blocks that run for all the work of one scope. */
const MOST_BLOCKS = 20 * MAX_WORK;

describe("the limit", () => {
  test("admits nothing more once work did not fit", () => {
    const limit = new WorkLimit(10);
    expect(limit.admits(10)).toBe(true);
    expect(limit.exceeded).toBe(false);
    expect(limit.admits(1)).toBe(false);
    expect(limit.exceeded).toBe(true);
    expect(limit.admits(0)).toBe(false);
  });

  test("is separate for policies of the cluster and of namespaces", () => {
    const limits = new WorkLimits(5);
    limits.of({ namespace: "shop" }).admits(6);
    expect(limits.of({ namespace: "shop" }).exceeded).toBe(true);
    expect(limits.of({}).exceeded).toBe(false);
  });

  test("multiplies the sizes of a policy and of an object", () => {
    const own = { terms: 4, values: 40 };
    expect(workOfMerge({ written: 10, labels: 3, terms: 2 }, { terms: 0, values: 0 })).toBe(10);
    expect(workOfMerge({ written: 10, labels: 3, terms: 2 }, own)).toBe(10 + (3 * 40 + 2 * 4) / 4);
    expect(workOfProduct({ terms: 2, values: 20 }, own)).toBe((2 * 40 + 4 * 20) / 2 + 3 * 60);
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

  test.each(kinds)("%s: those that do not fit cost next to nothing", async (_what, spec, own = {}) => {
    const policies = many(300, (p) => inShop(p, spec(p)));
    const hundred = await counted(policies.slice(0, 100), pod({ spec: own }));
    const all = await counted(policies, pod({ spec: own }));
    expect(hundred.blocks).toBeLessThan(MOST_BLOCKS);
    expect(all.blocks - hundred.blocks).toBeLessThan(200 * BLOCKS_OF_SKIPPED);
    const { findings, denials } = all.evaluation;
    expect(denials).toEqual([]);
    const left = findings.filter(({ rule }) => rule === "criteria");
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

  test("requirements that are too much to be compared are unmet", async () => {
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
      const { blocks, evaluation } = await counted(policies, pod({ spec: own }), "validate");
      expect(evaluation.denials.length === 0).toBe(allowed);
      expect(evaluation.findings).toHaveLength(30);
      expect(evaluation.findings.at(-1)).toMatchObject({ code: "USHER-P12", rule: "enforcement" });
      expect(blocks).toBeLessThan(MOST_BLOCKS);
    }
  });
});

describe("policies of ordinary size", () => {
  test("a hundred of them have room", async () => {
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
    const { blocks, evaluation } = await counted(policies, pod());
    expect(evaluation.findings.filter(({ code }) => code === "USHER-P12")).toEqual([]);
    expect(blocks).toBeLessThan(MOST_BLOCKS / 2);
  });

  test("twice as many still fit", () => {
    const policies = many(200, (p) =>
      inShop(p, { tolerations: [bears(`t${p}`)], nodeSelector: { [`k${p}`]: "v" } }),
    );
    const { evaluation } = placed([SHOP, ...policies], pod());
    expect(evaluation.findings.filter(({ code }) => code === "USHER-P12")).toEqual([]);
  });
});
