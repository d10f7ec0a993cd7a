import { describe, expect, test } from "vitest";
import { ask } from "../../../test/builders/evaluation.ts";
import { finding, moduleThat } from "../../../test/builders/module.ts";
import { outside, outsideWith } from "../../../test/builders/outside.ts";
import { pod } from "../../../test/builders/pod.ts";
import { requestFor } from "../../../test/builders/request.ts";
import { allow, need } from "../decision/decision.ts";
import { type Fact, MAX_ROUNDS, type Need, needKey } from "../decision/need.ts";
import type { Json } from "../json.ts";
import { responseOf } from "./response.ts";

const nodeNeed = (name: string): Need => ({ get: { resource: "nodes", name }, live: true });
const found = (value: Json): Fact => ({ found: value, complete: true });

/** Needs one fact, edits before that, and writes the result into the object. */
function asker(name: string, wanted: Need) {
  return moduleThat(name, {
    mutate: ({ draft, facts }) => {
      draft.set(["spec", "asked", name], true, undefined);
      draft.append(["spec", "rounds"], name, undefined);
      const fact = facts.of(wanted);
      if (fact === undefined) return need(wanted);
      draft.set(["spec", "learnt", name], fact as unknown as Json, undefined);
      return allow();
    },
  });
}

describe("needs", () => {
  test.each<[string, Fact, unknown]>([
    ["found", found({ spec: 1 }), []],
    ["absent", { absent: "NotFound" }, [nodeNeed("n")]],
    ["failed", { failed: "the door is shut" }, [nodeNeed("n")]],
  ])("a module decides by a fact that is %s", async (_what, fact, unknown) => {
    const world = outsideWith([[nodeNeed("n"), fact]]);
    const evaluation = await ask([asker("m", nodeNeed("n"))], requestFor(pod({ spec: {} })), world);
    expect(evaluation.draft.get("spec", "learnt", "m")).toEqual(fact);
    expect(evaluation.unknown).toEqual(unknown);
    expect(world.fetches).toEqual([[nodeNeed("n")]]);
    // Edits before the need were undone, so they occur once.
    expect(evaluation.draft.get("spec", "rounds")).toEqual(["m"]);
  });

  test("edits are undone while a module waits for its need", async () => {
    const sent = pod({ spec: { kept: true } });
    const before = JSON.stringify(sent);
    let during = "";
    const world = outside({
      fact: () => {
        during = JSON.stringify(sent);
        return { absent: "NotFound" };
      },
    });
    // A module without needs is undone together with the one that has them.
    const writes = moduleThat("writes", {
      mutate: ({ draft }) => {
        draft.append(["spec", "written"], "once", undefined);
        return allow();
      },
    });
    const { draft } = await ask([writes, asker("one", nodeNeed("n"))], requestFor(sent), world);
    expect(during).toBe(before);
    expect(draft.get("spec", "written")).toEqual(["once"]);
  });

  test("of several modules are fetched together, equal ones once", async () => {
    const world = outside();
    const silent = moduleThat("silent", { mutate: () => allow() });
    const modules = [asker("a", nodeNeed("x")), silent, asker("b", nodeNeed("y")), asker("c", nodeNeed("x"))];
    const evaluation = await ask(modules, requestFor(pod({ spec: {} })), world);
    expect(world.fetches).toEqual([[nodeNeed("x"), nodeNeed("y")]]);
    expect(evaluation.draft.get("spec", "learnt")).toEqual({
      a: { absent: "NotFound" },
      b: { absent: "NotFound" },
      c: { absent: "NotFound" },
    });
  });

  test("the spelling of a need does not matter", () => {
    expect(needKey({ get: { resource: "a", name: "b" } })).toBe(
      needKey({ get: { name: "b", resource: "a" } }),
    );
    expect(needKey(nodeNeed("n"))).not.toBe(needKey({ get: { resource: "nodes", name: "n" } }));
  });

  test("a fact that the source omitted counts as failed", async () => {
    const world = { ...outside(), fetch: async () => [] };
    const evaluation = await ask([asker("m", nodeNeed("n"))], requestFor(pod({ spec: {} })), world);
    expect(evaluation.draft.get("spec", "learnt", "m")).toEqual({ failed: "the source returned no fact" });
  });
});

/** Needs one fact after the other, up to `count`, and records the last one. */
function chain(count: number, rounds: string[][], failure: "open" | "closed" = "open") {
  return moduleThat("chain", {
    failure,
    mutate: ({ facts, draft }) => {
      const seen: string[] = [];
      rounds.push(seen);
      for (let i = 0; i < count; i++) {
        const fact = facts.of(nodeNeed(String(i)));
        if (fact === undefined) return need(nodeNeed(String(i)));
        seen.push("failed" in fact ? fact.failed : "known");
        if ("failed" in fact) return allow([finding({ outcome: "failed", message: fact.failed, warn: 50 })]);
      }
      draft.set(["spec", "done"], true, undefined);
      return allow();
    },
  });
}

describe("rounds", () => {
  const world = () => outside({ fact: () => found({}) });

  test("a module that needs every allowed round still decides", async () => {
    const rounds: string[][] = [];
    const here = world();
    const evaluation = await ask([chain(MAX_ROUNDS - 1, rounds)], requestFor(pod({ spec: {} })), here);
    expect(here.fetches).toHaveLength(MAX_ROUNDS - 1);
    expect(rounds).toHaveLength(MAX_ROUNDS);
    expect(evaluation.draft.get("spec", "done")).toBe(true);
    expect(evaluation.unknown).toEqual([]);
  });

  test("after four rounds an unmet need counts as failed, and the module decides", async () => {
    const rounds: string[][] = [];
    const here = world();
    const evaluation = await ask([chain(MAX_ROUNDS, rounds)], requestFor(pod({ spec: {} })), here);
    expect(MAX_ROUNDS).toBe(4);
    expect(here.fetches).toHaveLength(3);
    expect(rounds.at(-1)).toEqual(["known", "known", "known", "still undecided after 4 rounds"]);
    expect(evaluation.unknown).toEqual([nodeNeed("3")]);
    expect(responseOf(evaluation)).toMatchObject({
      allowed: true,
      warnings: ["still undecided after 4 rounds"],
    });
  });

  test.each<["open" | "closed", boolean]>([
    ["open", true],
    ["closed", false],
  ])("a module that always needs more is a fault, and its hook is %s", async (failure, allowed) => {
    let count = 0;
    const endless = moduleThat("endless", { failure, mutate: () => need(nodeNeed(String(count++))) });
    const after = moduleThat("after", {
      mutate: ({ draft }) => {
        draft.set(["spec", "after"], true, undefined);
        return allow();
      },
    });
    const evaluation = await ask([endless, after], requestFor(pod({ spec: {} })), world());
    expect(responseOf(evaluation).allowed).toBe(allowed);
    expect(evaluation.findings).toMatchObject([{ module: "endless", code: "USHER-E01" }]);
    expect(evaluation.draft.get("spec", "after")).toBe(true);
  });

  test("past the deadline nothing is fetched, and unmet needs count as failed", async () => {
    const here = outside({ expired: () => true });
    const evaluation = await ask([asker("m", nodeNeed("n"))], requestFor(pod({ spec: {} })), here);
    expect(here.fetches).toEqual([]);
    expect(evaluation.draft.get("spec", "learnt", "m")).toEqual({
      failed: "request deadline exceeded",
    });
    expect(evaluation.draft.get("spec", "rounds")).toEqual(["m"]);
    expect(evaluation.unknown).toEqual([nodeNeed("n")]);
  });

  test("a deadline that passes during a fetch: fetched facts count, further needs are failed", async () => {
    let time = 0;
    const here = outside({
      expired: () => time > 0,
      fact: () => {
        time++;
        return found({});
      },
    });
    const rounds: string[][] = [];
    await ask([chain(2, rounds)], requestFor(pod({ spec: {} })), here);
    expect(rounds).toEqual([[], ["known"], ["known", "request deadline exceeded"]]);
  });

  test("the last round's new needs are among the unknown ones", async () => {
    let round = 0;
    const changing = moduleThat("changing", {
      mutate: ({ facts }) => {
        const one = nodeNeed(`n${round++}`);
        return facts.of(one) === undefined ? need(one) : allow();
      },
    });
    const evaluation = await ask([changing], requestFor(pod()), world());
    expect(evaluation.unknown).toContainEqual(nodeNeed("n3"));
    expect(evaluation.findings).toEqual([]);
  });
});
