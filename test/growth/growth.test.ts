import { describe, expect, test } from "vitest";
import type { Assembly } from "../../src/core/evaluate/assembly.ts";
import { evaluate } from "../../src/core/evaluate/evaluate.ts";
import { responseOf } from "../../src/core/evaluate/response.ts";
import { StepCounter } from "../../src/core/evaluate/step-counter.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { policyCheck } from "../../src/core/policy/policy-check.ts";
import { placement } from "../../src/modules/placement/index.ts";
import { assemblyOf, atOnce, callOf } from "../builders/evaluation.ts";
import { again } from "../builders/json.ts";
import { outside } from "../builders/outside.ts";
import { came } from "../builders/policy.ts";
import { type GrowthCase, MULTIPLES, type Review, TENANT } from "./case.ts";
import { CountedReads } from "./counted-reads.ts";
import { noteCases } from "./notes.ts";
import { objectCases } from "./objects.ts";
import { ELSEWHERE_CASES, POLICY_CASES } from "./tenant-policies.ts";
import { TOGETHER_CASES } from "./together.ts";
import { WRITTEN_CASES } from "./written-policies.ts";

const assemblies = new WeakMap<readonly JsonObject[], Assembly>();

/** Most cases have the same policies at all sizes. */
function assemblyWith(policies: readonly JsonObject[]): Assembly {
  const known = assemblies.get(policies);
  if (known !== undefined) return known;
  const made = assemblyOf([placement, policyCheck([placement])], [TENANT, ...policies].map(came));
  assemblies.set(policies, made);
  return made;
}

/** What a review costs: steps that modules count, and reads of the object. */
function costOf({ policies, request, phase }: Review): number {
  const assembly = assemblyWith(policies);
  const counted = new CountedReads();
  const copy = (object: JsonObject | undefined) =>
    object === undefined ? undefined : counted.of(again(object));
  const steps = new StepCounter();
  const call = callOf(
    assembly,
    { ...request, object: copy(request.object), oldObject: copy(request.oldObject) },
    { phase, steps },
  );
  responseOf(atOnce(evaluate(call, outside())));
  return steps.steps + counted.reads;
}

/** Costs that a constant part of the review, or a limit that is reached on the way, may add. */
const SLACK = 5_000;

/** Small enough for a test: up to a sixteenth of what the bench measures. */
const costsOf = ({ n, review }: GrowthCase) =>
  MULTIPLES.map((multiple) => costOf(review(Math.ceil(n / 128) * multiple)));

describe("steps and reads grow at most as the object and its policies do", () => {
  const hostile = noteCases(30).filter(({ name }) => /1,000 of each, (?:stripped|reapplied)$/.test(name));
  const objects = objectCases(30).filter(({ name }) => !/^update .*enforced$|one cluster policy$/.test(name));
  const cases = [...objects, ...hostile, ...POLICY_CASES, ...WRITTEN_CASES, ...TOGETHER_CASES];

  test.each(cases.map((one) => [one.name, one] as const))("%s", (_name, one) => {
    const [first = 0, second = 0, third = 0, last = 0] = costsOf(one);
    // From each size to the next the size doubles, and so may what is added.
    const growth = Math.max(second - first, (third - second) / 2, 0);
    expect(last - third).toBeLessThanOrEqual(1.5 * 4 * growth + 0.1 * first + SLACK);
  });
});

test.each(ELSEWHERE_CASES.map((one) => [one.name, one] as const))("%s cost nothing", (_name, one) => {
  const [first, ...more] = costsOf(one);
  expect(new Set(more)).toEqual(new Set([first]));
});
