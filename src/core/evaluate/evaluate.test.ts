import { describe, expect, test } from "vitest";
import { ask, atOnce } from "../../../test/builders/evaluation.ts";
import { finding, moduleThat } from "../../../test/builders/module.ts";
import { outside, outsideWith } from "../../../test/builders/outside.ts";
import { pod } from "../../../test/builders/pod.ts";
import { requestFor } from "../../../test/builders/request.ts";
import { type Json, stringAt } from "../json.ts";
import type { Context } from "../module/module.ts";
import { allow, type Commit, deny, need, type Result } from "./decision.ts";
import { type CommitResult, MAX_COMMITS, MAX_ROUNDS } from "./evaluate.ts";
import { type Fact, type Need, needKey } from "./need.ts";
import { responseOf } from "./response.ts";

const nodeNeed = (name: string): Need => ({ get: { resource: "nodes", name }, live: true });
const found = (value: Json): Fact => ({ found: value, complete: true });

/** Asks for one thing, edits before it asks, and writes into the object what came of it. */
function asker(name: string, wanted: Need) {
  return moduleThat(name, {
    mutate: ({ object, facts }) => {
      object.set(["spec", "asked", name], true, undefined);
      object.append(["spec", "rounds"], name, undefined);
      const fact = facts.of(wanted);
      if (fact === undefined) return need(wanted);
      object.set(["spec", "learnt", name], fact as unknown as Json, undefined);
      return allow();
    },
  });
}

describe("needs", () => {
  test.each<[string, Fact, unknown]>([
    ["found", found({ spec: 1 }), []],
    ["absent", { absent: true }, [nodeNeed("n")]],
    ["failed", { failed: "the door is shut" }, [nodeNeed("n")]],
  ])("%s", async (_what, fact, unknown) => {
    const world = outsideWith([[nodeNeed("n"), fact]]);
    const evaluation = await ask([asker("m", nodeNeed("n"))], requestFor(pod({ spec: {} })), world);
    expect(evaluation.draft.get("spec", "learnt", "m")).toEqual(fact);
    expect(evaluation.unknown).toEqual(unknown);
    expect(world.fetches).toEqual([[nodeNeed("n")]]);
    // What was edited before the question was undone, so it is there once.
    expect(evaluation.draft.get("spec", "rounds")).toEqual(["m"]);
  });

  test("edits are undone while it waits", async () => {
    const sent = pod({ spec: { kept: true } });
    const before = JSON.stringify(sent);
    let during = "";
    const world = outside({
      fact: () => {
        during = JSON.stringify(sent);
        return { absent: true };
      },
    });
    // One that asks nothing is undone with the one that asks.
    const writes = moduleThat("writes", {
      mutate: ({ object }) => {
        object.append(["spec", "written"], "once", undefined);
        return allow();
      },
    });
    const { draft } = await ask([writes, asker("one", nodeNeed("n"))], requestFor(sent), world);
    expect(during).toBe(before);
    expect(draft.get("spec", "written")).toEqual(["once"]);
  });

  test("of several modules in one fetch, the same one once", async () => {
    const world = outside();
    const quiet = moduleThat("quiet", { mutate: () => allow() });
    const modules = [asker("a", nodeNeed("x")), quiet, asker("b", nodeNeed("y")), asker("c", nodeNeed("x"))];
    const evaluation = await ask(modules, requestFor(pod({ spec: {} })), world);
    expect(world.fetches).toEqual([[nodeNeed("x"), nodeNeed("y")]]);
    expect(evaluation.draft.get("spec", "learnt")).toEqual({
      a: { absent: true },
      b: { absent: true },
      c: { absent: true },
    });
  });

  test("the spelling of a need does not matter", () => {
    expect(needKey({ get: { resource: "a", name: "b" } })).toBe(
      needKey({ get: { name: "b", resource: "a" } }),
    );
    expect(needKey(nodeNeed("n"))).not.toBe(needKey({ get: { resource: "nodes", name: "n" } }));
  });

  test("a fact that the source forgot to give is a failed one", async () => {
    const world = { ...outside(), fetch: async () => [] };
    const evaluation = await ask([asker("m", nodeNeed("n"))], requestFor(pod({ spec: {} })), world);
    expect(evaluation.draft.get("spec", "learnt", "m")).toEqual({ failed: "the source gave no answer" });
  });
});

/** Needs one thing after the other, up to `count`, and notes the last it saw. */
function chain(count: number, rounds: string[][], failure: "open" | "closed" = "open") {
  return moduleThat("chain", {
    failure,
    mutate: ({ facts, object }) => {
      const seen: string[] = [];
      rounds.push(seen);
      for (let i = 0; i < count; i++) {
        const fact = facts.of(nodeNeed(String(i)));
        if (fact === undefined) return need(nodeNeed(String(i)));
        seen.push("failed" in fact ? fact.failed : "known");
        if ("failed" in fact) return allow([finding({ outcome: "failed", message: fact.failed, warn: 50 })]);
      }
      object.set(["spec", "done"], true, undefined);
      return allow();
    },
  });
}

describe("rounds", () => {
  const world = () => outside({ fact: () => found({}) });

  test("as many as are allowed are enough", async () => {
    const rounds: string[][] = [];
    const here = world();
    const evaluation = await ask([chain(MAX_ROUNDS - 1, rounds)], requestFor(pod({ spec: {} })), here);
    expect(here.fetches).toHaveLength(MAX_ROUNDS - 1);
    expect(rounds).toHaveLength(MAX_ROUNDS);
    expect(evaluation.draft.get("spec", "done")).toBe(true);
    expect(evaluation.unknown).toEqual([]);
  });

  test("after three what is missing is failed, and the module decides", async () => {
    const rounds: string[][] = [];
    const here = world();
    const evaluation = await ask([chain(MAX_ROUNDS, rounds)], requestFor(pod({ spec: {} })), here);
    expect(MAX_ROUNDS).toBe(3);
    expect(here.fetches).toHaveLength(2);
    expect(rounds.at(-1)).toEqual(["known", "known", "too many rounds of questions"]);
    expect(evaluation.unknown).toEqual([nodeNeed("2")]);
    expect(responseOf(evaluation)).toMatchObject({
      allowed: true,
      warnings: ["too many rounds of questions"],
    });
  });

  test.each<["open" | "closed", boolean]>([
    ["open", true],
    ["closed", false],
  ])("a module that asks for ever: a fault, and its hook is %s", async (failure, allowed) => {
    let count = 0;
    const endless = moduleThat("endless", { failure, mutate: () => need(nodeNeed(String(count++))) });
    const after = moduleThat("after", {
      mutate: ({ object }) => {
        object.set(["spec", "after"], true, undefined);
        return allow();
      },
    });
    const evaluation = await ask([endless, after], requestFor(pod({ spec: {} })), world());
    expect(responseOf(evaluation).allowed).toBe(allowed);
    expect(evaluation.findings).toMatchObject([{ module: "endless", code: "USHER-E01" }]);
    expect(evaluation.draft.get("spec", "after")).toBe(true);
  });

  test("past the deadline nothing is fetched, and what is missing is failed", async () => {
    const here = outside({ expired: () => true });
    const evaluation = await ask([asker("m", nodeNeed("n"))], requestFor(pod({ spec: {} })), here);
    expect(here.fetches).toEqual([]);
    expect(evaluation.draft.get("spec", "learnt", "m")).toEqual({
      failed: "the time for this request ran out",
    });
    expect(evaluation.draft.get("spec", "rounds")).toEqual(["m"]);
    expect(evaluation.unknown).toEqual([nodeNeed("n")]);
  });

  test("a deadline that passes during a fetch: what came counts, what is further missing is failed", async () => {
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
    expect(rounds).toEqual([[], ["known"], ["known", "the time for this request ran out"]]);
  });

  test("the last round's new questions are among what was not known", async () => {
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

const LEDGER: Need = { get: { resource: "ledgers", name: "jane" }, live: true };
const write = (resourceVersion: string | undefined, rests: Need = LEDGER): Commit => ({
  resource: "ledgers",
  name: "get" in rests ? rests.get.name : "",
  object: { reserved: true },
  resourceVersion,
  rests,
});

/** Reserves a place in a ledger: full is refused, and what can't be known or written is refused with another word. */
function reserver(name = "reserver", rests: Need = LEDGER) {
  const judge = ({ facts }: Context): Result => {
    const fact = facts.of(rests);
    if (fact === undefined) return need(rests);
    if ("failed" in fact) {
      return deny({ code: 503, reason: "ServiceUnavailable", message: `unsure: ${fact.failed}` }, []);
    }
    if ("absent" in fact) return allow([], write(undefined, rests));
    if (stringAt(fact.found, "free") === "no")
      return deny({ code: 403, reason: "Forbidden", message: "full" }, []);
    return allow([], write(stringAt(fact.found, "version"), rests));
  };
  return moduleThat(name, { failure: "closed", validate: judge });
}

const validate = { phase: "validate" } as const;

describe("commits", () => {
  const versions = (...list: Fact[]) => {
    let i = 0;
    return () => list[Math.min(i++, list.length - 1)] ?? { absent: true as const };
  };

  test("written once, after all have allowed, with the version that it rests on", async () => {
    const here = outside({ fact: versions(found({ version: "7" })) });
    const evaluation = await ask([reserver()], requestFor(pod()), here, validate);
    expect(responseOf(evaluation).allowed).toBe(true);
    expect(here.commits).toEqual([write("7")]);
  });

  test("or on its absence", async () => {
    const here = outside();
    await ask([reserver()], requestFor(pod()), here, validate);
    expect(here.commits).toEqual([write(undefined)]);
  });

  test("on a conflict the fact is read again and all is evaluated again", async () => {
    const here = outside({
      fact: versions(found({ version: "7" }), found({ version: "8" })),
      commit: (_commit, attempt) => (attempt === 1 ? "conflict" : "done"),
    });
    let judged = 0;
    const other = moduleThat("other", {
      validate: () => {
        judged++;
        return allow();
      },
    });
    const evaluation = await ask([reserver(), other], requestFor(pod()), here, validate);
    expect(responseOf(evaluation).allowed).toBe(true);
    expect(here.commits.map(({ resourceVersion }) => resourceVersion)).toEqual(["7", "8"]);
    expect(here.fetches).toEqual([[LEDGER], [LEDGER]]);
    expect(judged).toBe(4);
  });

  test("a conflict after which it is full", async () => {
    const here = outside({
      fact: versions(found({ version: "7" }), found({ free: "no" })),
      commit: () => "conflict",
    });
    const evaluation = await ask([reserver()], requestFor(pod()), here, validate);
    expect(responseOf(evaluation)).toMatchObject({ allowed: false, status: { code: 403, message: "full" } });
    expect(here.commits).toHaveLength(1);
  });

  test("edits made before a conflict are there once", async () => {
    const edits = moduleThat("edits", {
      mutate: ({ object, facts }) => {
        object.append(["spec", "rounds"], "x", undefined);
        const fact = facts.of(LEDGER);
        return fact === undefined ? need(LEDGER) : allow([], write("1"));
      },
    });
    const here = outside({ commit: (_commit, attempt) => (attempt < 4 ? "conflict" : "done") });
    const evaluation = await ask([edits], requestFor(pod({ spec: {} })), here);
    expect(evaluation.draft.get("spec", "rounds")).toEqual(["x"]);
    expect(here.commits).toHaveLength(4);
  });

  test("on a dry run never", async () => {
    const here = outside({ fact: () => found({ version: "7" }) });
    const evaluation = await ask([reserver()], requestFor(pod(), { dryRun: true }), here, validate);
    expect(responseOf(evaluation).allowed).toBe(true);
    expect(here.commits).toEqual([]);
  });

  test("after a denial of anybody never", async () => {
    const here = outside({ fact: () => found({ version: "7" }) });
    const no = moduleThat("no", {
      validate: () => deny({ code: 403, reason: "Forbidden", message: "no" }, []),
    });
    for (const modules of [
      [no, reserver()],
      [reserver(), no],
    ]) {
      const evaluation = await ask(modules, requestFor(pod()), here, validate);
      expect(responseOf(evaluation).allowed).toBe(false);
    }
    expect(here.commits).toEqual([]);
  });

  test("one that fails: the module decides by the fact that is now failed", async () => {
    const here = outside({ fact: () => found({ version: "7" }), commit: () => ({ failed: "disk full" }) });
    const evaluation = await ask([reserver()], requestFor(pod()), here, validate);
    expect(responseOf(evaluation)).toMatchObject({
      allowed: false,
      status: { code: 503, message: "unsure: disk full" },
    });
    expect(here.commits).toHaveLength(1);
    expect(evaluation.unknown).toEqual([LEDGER]);
  });

  test("one that fails, of a module that will not hear: refused, for what had to be written was not", async () => {
    const deaf = moduleThat("deaf", { validate: () => allow([], write("7")) });
    for (const result of [{ failed: "x" }, "conflict"] satisfies CommitResult[]) {
      const here = outside({ commit: () => result });
      const evaluation = await ask([deaf], requestFor(pod()), here, validate);
      expect(responseOf(evaluation)).toMatchObject({
        allowed: false,
        status: { code: 429, reason: "TooManyRequests", retryAfterSeconds: 1 },
      });
      expect(evaluation.commits).toEqual([]);
      expect(here.commits).toHaveLength(result === "conflict" ? MAX_COMMITS : 1);
    }
  });

  test("one conflict after the other has an end, and then the module decides", async () => {
    const here = outside({ fact: () => found({ version: "7" }), commit: () => "conflict" });
    const evaluation = await ask([reserver()], requestFor(pod()), here, validate);
    expect(here.commits).toHaveLength(MAX_COMMITS);
    expect(responseOf(evaluation)).toMatchObject({
      allowed: false,
      status: { code: 503, message: "unsure: too many others wrote at the same time" },
    });
  });

  test("past the deadline nothing is written", async () => {
    let time = 0;
    const here = outside({
      expired: () => time > 0,
      fact: () => {
        time++;
        return found({ version: "7" });
      },
    });
    const evaluation = await ask([reserver()], requestFor(pod()), here, validate);
    expect(here.commits).toEqual([]);
    expect(responseOf(evaluation)).toMatchObject({ allowed: false, status: { code: 503 } });
  });

  test("of two, the first written and the second in conflict: both facts are read again", async () => {
    const second: Need = { get: { resource: "ledgers", name: "shop" }, live: true };
    const version = new Map([
      ["jane", 1],
      ["shop", 1],
    ]);
    const here = outside({
      fact: (one) => found({ version: String(version.get("get" in one ? one.get.name : "")) }),
      commit: ({ name, resourceVersion }, attempt) => {
        if (attempt === 2) version.set("shop", 5);
        if (String(version.get(name)) !== resourceVersion) return "conflict";
        version.set(name, (version.get(name) ?? 0) + 1);
        return "done";
      },
    });
    const evaluation = await ask(
      [reserver("a", LEDGER), reserver("b", second)],
      requestFor(pod()),
      here,
      validate,
    );
    expect(responseOf(evaluation).allowed).toBe(true);
    expect(here.commits.map(({ name, resourceVersion }) => `${name} ${resourceVersion}`)).toEqual([
      "jane 1",
      "shop 1",
      "jane 2",
      "shop 5",
    ]);
    expect(here.fetches).toEqual([
      [LEDGER, second],
      [LEDGER, second],
    ]);
  });

  test("without a need before it, a commit alone makes it wait", async () => {
    const direct = moduleThat("direct", { validate: () => allow([], write("7")) });
    const here = outside();
    const evaluation = ask([direct], requestFor(pod()), here, validate);
    expect(evaluation).toBeInstanceOf(Promise);
    expect(responseOf(await evaluation).allowed).toBe(true);
    expect(here.commits).toHaveLength(1);
    expect(atOnce(ask([direct], requestFor(pod(), { dryRun: true }), here, validate)).denials).toEqual([]);
    expect(here.commits).toHaveLength(1);
  });
});
