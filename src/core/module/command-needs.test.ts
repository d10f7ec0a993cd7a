import { expect, test } from "vitest";
import type { Fact, Need } from "../decision/need.ts";
import { MAX_ROUNDS } from "../decision/need.ts";
import type { JsonObject } from "../json.ts";
import type { CommandSteps } from "./command.ts";
import { readPages, withFacts } from "./command-needs.ts";

const node = (name: string): Need => ({ get: { resource: "nodes", name } });

/** Runs steps to their end, with a fact for each need. */
function driven<Result>(steps: CommandSteps<Result>, fact: (need: Need) => Fact) {
  const needs: Need[] = [];
  let step = steps.next([]);
  while (step.done !== true) {
    needs.push(...step.value.need);
    step = steps.next(step.value.need.map(fact));
  }
  return { result: step.value, needs };
}

test("evaluates again with facts until nothing is needed", () => {
  const { result, needs } = driven(
    withFacts((facts) => {
      const first = facts.of(node("a"));
      if (first === undefined) return { needs: [node("a")] };
      const second = facts.of(node("b"));
      return second === undefined ? { needs: [node("b")] } : { first, second };
    }),
    ({ ...need }) => ({ found: need as unknown as JsonObject, complete: true }),
  );
  expect(needs).toEqual([node("a"), node("b")]);
  expect(result).toMatchObject({ first: { found: node("a") }, second: { found: node("b") } });
});

test("after the last round an unmet need counts as failed", () => {
  let rounds = 0;
  const { result, needs } = driven(
    withFacts((facts) => {
      const fact = facts.of(node(`round-${++rounds}`));
      return fact === undefined ? { needs: [node(`round-${rounds}`)] } : { fact };
    }),
    () => ({ found: {}, complete: true }),
  );
  expect(needs).toHaveLength(MAX_ROUNDS - 1);
  expect(result).toEqual({ fact: { failed: "too many rounds of needs" } });
});

const list = (token: string | undefined): Need => ({
  list: { resource: "pods", ...(token === undefined ? {} : { continue: token }) },
  limit: 2,
  share: 1,
});

function pages(...facts: readonly Fact[]) {
  const used: JsonObject[] = [];
  const left = [...facts];
  const { result, needs } = driven(
    readPages({
      what: "pods",
      page: list,
      // biome-ignore lint/correctness/useYield: an object needs nothing.
      *take(objects) {
        used.push(...objects);
      },
      progress: { doing: "reading", things: "lists", done: 0, total: 1 },
    }),
    () => left.shift() ?? { failed: "not expected" },
  );
  return { failure: result, used, needs };
}

test("reads a list page by page, and drops what is not an object", () => {
  const { failure, used, needs } = pages(
    { found: [{ a: 1 }, "junk"], complete: false, next: "2" },
    { found: [{ b: 2 }], complete: true },
  );
  expect(failure).toBeUndefined();
  expect(used).toEqual([{ a: 1 }, { b: 2 }]);
  expect(needs).toEqual([list(undefined), list("2")]);
});

test.each<[string, Fact, string]>([
  ["a failed page", { failed: "pods: 403" }, "pods: 403"],
  ["a kind that is not served", { absent: "NotServed" }, "pods: the API server does not serve this kind"],
  [
    "a list cut short",
    { found: [], complete: false },
    "pods: list is incomplete, timed out or with an object that is too large to be read",
  ],
])("%s is reported", (_, fact, failure) => {
  expect(pages(fact).failure).toBe(failure);
});

test.each([
  [true, undefined],
  [false, "rollouts.argoproj.io: the API server does not serve this kind"],
])("an optional kind that is not served has no objects: %s", (optional, failure) => {
  const steps = readPages({
    what: "rollouts.argoproj.io",
    page: () => ({ list: { resource: "rollouts.argoproj.io" }, limit: 1, share: 1 }),
    take: function* () {},
    progress: { doing: "reading", things: "kinds", done: 0, total: 1 },
    optional,
  });
  expect(driven(steps, () => ({ absent: "NotServed" })).result).toBe(failure);
});
