import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { assembleModules } from "../../src/cli/source/source.ts";
import { evaluate } from "../../src/core/evaluate/evaluate.ts";
import { responseOf } from "../../src/core/evaluate/response.ts";
import type { JsonObject } from "../../src/core/json.ts";
import type { Assembly } from "../../src/core/module/assembly.ts";
import { hookWants } from "../../src/core/module/hook.ts";
import { policyCheck } from "../../src/core/module/policy-check.ts";
import { modules } from "../../src/modules/all.ts";
import { placement } from "../../src/modules/placement/index.ts";
import { assemblyOf, callOf } from "../builders/evaluation.ts";
import { again } from "../builders/json.ts";
import { outside } from "../builders/outside.ts";
import { came } from "../builders/policy.ts";
import { ExecutedBlocks } from "../support/executed-blocks.ts";
import { type GrowthCase, MULTIPLES, type Review, TENANT } from "./case.ts";
import { CountedReads } from "./counted-reads.ts";
import { HOOK_CASES } from "./hooks.ts";
import { noteCases } from "./notes.ts";
import { objectCases } from "./objects.ts";
import { ELSEWHERE_CASES, POLICY_CASES } from "./tenant-policies.ts";
import { TOGETHER_CASES } from "./together.ts";
import { factOf, SMALL, WORLDS, type World } from "./worlds.ts";
import { WRITTEN_CASES } from "./written-policies.ts";

const assemblies = new WeakMap<object, Assembly>();

/** Most cases have the same policies at all sizes. */
function assemblyWith(policies: readonly JsonObject[]): Assembly {
  const known = assemblies.get(policies);
  if (known !== undefined) return known;
  const made = assemblyOf([placement, policyCheck([placement])], [TENANT, ...policies].map(came));
  assemblies.set(policies, made);
  return made;
}

function assemblyIn(world: World): Assembly {
  const known = assemblies.get(world);
  if (known !== undefined) return known;
  const made = assembleModules(modules, {}, world.configuration);
  made.apply(world.objects(SMALL).map(came));
  assemblies.set(world, made);
  return made;
}

let blocks: ExecutedBlocks;
beforeAll(async () => {
  blocks = await ExecutedBlocks.start();
});
afterAll(() => blocks.stop());

/** Costs of reviews: blocks of code that run, and reads of the object. */
async function costsOfReviews(reviews: readonly Review[]): Promise<number[]> {
  const prepared = reviews.map(prepare);
  const costs: number[] = [];
  // Taking the blocks looks at all code that is loaded, and takes longer than most reviews: all are prepared before.
  await blocks.take();
  for (const { run, counted } of prepared) {
    await run();
    costs.push((await blocks.take()) + counted.reads);
  }
  return costs;
}

function prepare({ policies, request, phase, world, pod }: Review) {
  const assembly = world === undefined ? assemblyWith(policies) : assemblyIn(world);
  const hooks = assembly.hooks;
  const counted = new CountedReads();
  const copy = (object: JsonObject | undefined) =>
    object === undefined ? undefined : counted.of(again(object));
  const stored = copy(pod);
  const call = callOf(
    assembly,
    { ...request, object: copy(request.object), oldObject: copy(request.oldObject) },
    { phase, hooks },
  );
  const around = outside({ fact: (need) => factOf(need, stored, SMALL) });
  const run = async () => responseOf(await evaluate(call, around));
  return { run, counted };
}

/** The cost that a constant part of the review, or a limit reached on the way, may add. */
const SLACK = 5_000;

/** Small enough for a test: up to a sixteenth of the benchmark's sizes. */
function costsOf({ n, review }: GrowthCase): Promise<number[]> {
  return costsOfReviews(MULTIPLES.map((multiple) => review(Math.ceil(n / 128) * multiple)));
}

describe("executed blocks and reads grow at most linearly with the object and its policies", () => {
  const hostile = noteCases(30).filter(({ name }) => /1,000 of each, (?:stripped|reapplied)$/.test(name));
  const objects = objectCases(30).filter(({ name }) => !/^update .*enforced$|one cluster policy$/.test(name));
  const cases = [...objects, ...hostile, ...POLICY_CASES, ...WRITTEN_CASES, ...TOGETHER_CASES, ...HOOK_CASES];

  test.each(cases.map((one) => [one.name, one] as const))("%s", async (_name, one) => {
    const [first = 0, second = 0, third = 0, last = 0] = await costsOf(one);
    // Each size is double the one before, so the added cost may double too.
    const growth = Math.max(second - first, (third - second) / 2, 0);
    expect(last - third).toBeLessThanOrEqual(1.5 * 4 * growth + 0.1 * first + SLACK);
  });
});

test.each(ELSEWHERE_CASES.map((one) => [one.name, one] as const))("%s cost nothing", async (_name, one) => {
  const costs = await costsOf(one);
  expect(Math.max(...costs) - Math.min(...costs)).toBeLessThan(5);
});

describe.each(WORLDS.map((world) => [world.name, world] as const))("with %s", (_name, world) => {
  const reviews = [...HOOK_CASES, ...WRITTEN_CASES].map(({ review }) => review(1));
  const here = reviews.filter((review) => review.world === world || review.world === undefined);
  const hooks = assemblyIn(world).hooks.filter(({ rules }) => rules.length > 0);

  test.each(hooks.map((hook) => [hook.name, hook] as const))("the hook %s has a case", (_hook, hook) => {
    // Shadow hooks ask the same question in other namespaces.
    const { namespaces: _, ...anywhere } = hook;
    expect(here.some(({ phase, request }) => phase === hook.phase && hookWants(anywhere, request))).toBe(
      true,
    );
  });
});

test("every module has a hook in some world", () => {
  const found = new Set(WORLDS.flatMap((world) => assemblyIn(world).hooks).map(({ module }) => module));
  expect(modules.map(({ name }) => name).filter((name) => !found.has(name))).toEqual([]);
});
