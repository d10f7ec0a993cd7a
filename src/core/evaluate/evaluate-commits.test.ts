import { describe, expect, test } from "vitest";
import { ask, atOnce } from "../../../test/builders/evaluation.ts";
import { moduleThat } from "../../../test/builders/module.ts";
import { outside } from "../../../test/builders/outside.ts";
import { pod } from "../../../test/builders/pod.ts";
import { requestFor } from "../../../test/builders/request.ts";
import { allow, type Commit, deny, need, type Result } from "../decision/decision.ts";
import type { Fact, Need } from "../decision/need.ts";
import { type Json, stringAt } from "../json.ts";
import type { Context } from "../module/module.ts";
import { type CommitResult, MAX_COMMITS } from "./evaluate.ts";
import { responseOf } from "./response.ts";

const found = (value: Json): Fact => ({ found: value, complete: true });

const LEDGER: Need = { get: { resource: "ledgers", name: "jane" }, live: true };
const write = (resourceVersion: string | undefined, rests: Need = LEDGER): Commit => ({
  resource: "ledgers",
  name: "get" in rests ? rests.get.name : "",
  object: { reserved: true },
  resourceVersion,
  rests,
});

/** Reserves a place in a ledger: a full one refuses, and an unknown or unwritable one refuses with another message. */
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
    return () => list[Math.min(i++, list.length - 1)] ?? { absent: "NotFound" as const };
  };

  test("are written once, after all modules have allowed, with the version that they rest on", async () => {
    const here = outside({ fact: versions(found({ version: "7" })) });
    const evaluation = await ask([reserver()], requestFor(pod()), here, validate);
    expect(responseOf(evaluation).allowed).toBe(true);
    expect(here.commits).toEqual([write("7")]);
  });

  test("may rest on the absence of an object", async () => {
    const here = outside();
    await ask([reserver()], requestFor(pod()), here, validate);
    expect(here.commits).toEqual([write(undefined)]);
  });

  test("a conflict reads the fact again and evaluates everything again", async () => {
    const here = outside({
      fact: versions(found({ version: "7" }), found({ version: "8" })),
      commit: (_commit, attempt) => (attempt === 1 ? "conflict" : "done"),
    });
    let judged = 0;
    const conflicts: number[] = [];
    const other = moduleThat("other", {
      validate: ({ facts }) => {
        judged++;
        conflicts.push(facts.conflicts);
        return allow();
      },
    });
    const evaluation = await ask([reserver(), other], requestFor(pod()), here, validate);
    expect(responseOf(evaluation).allowed).toBe(true);
    expect(here.commits.map(({ resourceVersion }) => resourceVersion)).toEqual(["7", "8"]);
    expect(here.fetches).toEqual([[LEDGER], [LEDGER]]);
    expect(judged).toBe(4);
    expect(conflicts).toEqual([0, 0, 1, 1]);
  });

  test("are not written if the ledger is full after a conflict", async () => {
    const here = outside({
      fact: versions(found({ version: "7" }), found({ free: "no" })),
      commit: () => "conflict",
    });
    const evaluation = await ask([reserver()], requestFor(pod()), here, validate);
    expect(responseOf(evaluation)).toMatchObject({ allowed: false, status: { code: 403, message: "full" } });
    expect(here.commits).toHaveLength(1);
  });

  test("edits made before a conflict occur once", async () => {
    const edits = moduleThat("edits", {
      mutate: ({ draft, facts }) => {
        draft.append(["spec", "rounds"], "x", undefined);
        const fact = facts.of(LEDGER);
        return fact === undefined ? need(LEDGER) : allow([], write("1"));
      },
    });
    const here = outside({ commit: (_commit, attempt) => (attempt < 4 ? "conflict" : "done") });
    const evaluation = await ask([edits], requestFor(pod({ spec: {} })), here);
    expect(evaluation.draft.get("spec", "rounds")).toEqual(["x"]);
    expect(here.commits).toHaveLength(4);
  });

  test("are never written on a dry run", async () => {
    const here = outside({ fact: () => found({ version: "7" }) });
    const evaluation = await ask([reserver()], requestFor(pod(), { dryRun: true }), here, validate);
    expect(responseOf(evaluation).allowed).toBe(true);
    expect(here.commits).toEqual([]);
  });

  test("are never written after a denial", async () => {
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

  test("let the module decide by a failed fact if the write fails", async () => {
    const here = outside({ fact: () => found({ version: "7" }), commit: () => ({ failed: "disk full" }) });
    const evaluation = await ask([reserver()], requestFor(pod()), here, validate);
    expect(responseOf(evaluation)).toMatchObject({
      allowed: false,
      status: { code: 503, message: "unsure: disk full" },
    });
    expect(here.commits).toHaveLength(1);
    expect(evaluation.unknown).toEqual([LEDGER]);
  });

  test("are denied if the write failed and the module still commits", async () => {
    const deaf = moduleThat("deaf", { validate: () => allow([], write("7")) });
    for (const result of [{ failed: "x" }, "conflict"] satisfies CommitResult[]) {
      const here = outside({ commit: () => result });
      const evaluation = await ask([deaf], requestFor(pod()), here, validate);
      expect(responseOf(evaluation)).toMatchObject({
        allowed: false,
        status: {
          code: 429,
          reason: "TooManyRequests",
          retryAfterSeconds: 1,
          causes: [{ reason: "USHER-E03", message: expect.stringContaining("try again") }],
        },
      });
      expect(evaluation.commits).toEqual([]);
      expect(here.commits).toHaveLength(result === "conflict" ? MAX_COMMITS : 1);
    }
  });

  test("are given up after several conflicts, and then the module decides", async () => {
    const here = outside({ fact: () => found({ version: "7" }), commit: () => "conflict" });
    const evaluation = await ask([reserver()], requestFor(pod()), here, validate);
    expect(here.commits).toHaveLength(MAX_COMMITS);
    expect(responseOf(evaluation)).toMatchObject({
      allowed: false,
      status: { code: 503, message: "unsure: too many concurrent writes" },
    });
  });

  test("are not written past the deadline", async () => {
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

  test("if the second of two conflicts, the facts of both are read again", async () => {
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

  test("make an evaluation asynchronous, also without a need", async () => {
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
