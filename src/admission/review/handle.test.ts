import { EventEmitter } from "node:events";
import { describe, expect, test } from "vitest";
import {
  BEHAVIOURS,
  responseOf,
  review,
  testModule,
  testSource,
} from "../../../test/support/admission/example-cluster.ts";
import type { Count } from "../../core/decision/decision.ts";
import { allow } from "../../core/decision/decision.ts";
import type { Source } from "../../core/evaluate/source.ts";
import { type Log, SILENT } from "../../core/log.ts";
import type { HttpResponse } from "../http/http-response.ts";
import { afterResponse } from "./after-response.ts";
import { marginOf } from "./deadline.ts";
import { ReviewHandler } from "./handle.ts";
import { NESTING_LIMIT } from "./structure.ts";

const BODY = Buffer.from(JSON.stringify(review()));

function ask(path: string, source: Source = testSource(), body = BODY, log: Log = SILENT) {
  return new ReviewHandler({ source, log }).handle(body, path);
}

function now(reply: HttpResponse | Promise<HttpResponse>): HttpResponse {
  if (reply instanceof Promise) throw new Error("a promise where nothing was needed");
  return reply;
}

test("answers a request without needs synchronously", () => {
  expect(responseOf(now(ask("/validate/welcome")))).toEqual({
    uid: "705ab4f5-6393-11e8-b7cc-42010a800002",
    allowed: true,
  });
});

test("answers 503 while the source is not synced", () => {
  const reply = now(ask("/validate/welcome", testSource({ ready: false })));
  expect(reply.status).toBe(503);
});

test("fetches a need, and answers after it", async () => {
  const reply = ask("/validate/pool");
  expect(reply).toBeInstanceOf(Promise);
  expect(responseOf(await reply)).toMatchObject({ allowed: true });
});

test("does not wait for a silent source longer than the caller does", async () => {
  let aborted = false;
  const source = testSource({
    fetch: (_needs, { signal, remaining }) => {
      expect(remaining()).toBeLessThanOrEqual(200 - marginOf(200));
      signal.addEventListener("abort", () => {
        aborted = true;
      });
      return new Promise(() => undefined);
    },
  });
  const response = responseOf(await ask("/validate/pool?timeout=200ms", source));
  expect(response).toMatchObject({ allowed: false, status: { code: 403 } });
  expect(JSON.stringify(response)).toContain("request deadline exceeded");
  expect(aborted).toBe(true);
});

test.each(["throws", "rejects"])("treats a source that %s as a failed fact", async (how) => {
  const said: string[] = [];
  const source = testSource({
    fetch: () => {
      if (how === "throws") throw new Error("secret place");
      return Promise.reject(new Error("secret place"));
    },
  });
  const reply = await ask("/validate/pool", source, BODY, {
    ...SILENT,
    error: (_f, text) => said.push(text),
  });
  expect(responseOf(reply)).toMatchObject({ allowed: false });
  expect(reply.body).toContain("internal error fetching facts");
  expect(reply.body).not.toContain("secret place");
  expect(said).toEqual(["internal error fetching facts"]);
});

test("stops waiting when the caller disconnects", async () => {
  const caller = new EventEmitter();
  const { promise: fetching, resolve } = Promise.withResolvers<AbortSignal>();
  const source = testSource({
    fetch: (_needs, { signal }) => {
      resolve(signal);
      return new Promise(() => undefined);
    },
  });
  const reply = new ReviewHandler({ source, log: SILENT }).handle(BODY, "/validate/pool?timeout=30s", caller);
  const signal = await fetching;
  expect(signal.aborted).toBe(false);
  caller.emit("close");
  expect(signal.aborted).toBe(true);
  expect(responseOf(await reply)).toMatchObject({ allowed: false });
});

test("commits before the answer, and refuses if the commit fails or hangs", async () => {
  let commits = 0;
  const done = testSource({
    commit: async () => {
      commits++;
      return "done";
    },
  });
  expect(responseOf(await ask("/validate/record", done))).toMatchObject({ allowed: true });
  expect(commits).toBe(1);
  const rejects = testSource({ commit: () => Promise.reject(new Error("no")) });
  expect(responseOf(await ask("/validate/record", rejects))).toMatchObject({ allowed: false });
  const hangs = testSource({ commit: () => new Promise(() => undefined) });
  expect(responseOf(await ask("/validate/record?timeout=150ms", hangs))).toMatchObject({ allowed: false });
});

test("commits nothing in a dry run", async () => {
  const source = testSource({ commit: () => Promise.reject(new Error("must not be called")) });
  const body = Buffer.from(JSON.stringify(review({ dryRun: true })));
  expect(responseOf(await ask("/validate/record", source, body))).toMatchObject({ allowed: true });
});

test("a module that throws: its hook decides, and the client sees no internals", () => {
  const open = responseOf(now(ask("/validate/throws-open")));
  expect(open).toMatchObject({ allowed: true, warnings: [expect.stringContaining("USHER-E01")] });
  const closed = responseOf(now(ask("/validate/throws-closed")));
  expect(closed).toMatchObject({ allowed: false, status: { code: 500, reason: "InternalError" } });
  expect(JSON.stringify(closed["status"])).not.toContain("inner workings");
});

test.each([
  ["open", true],
  ["closed", false],
] as const)("a fault outside every module with a hook that is %s", (failure, allowed) => {
  // The clock is read outside the guard around modules, so a broken clock is an internal error.
  const source = testSource({}, testModule({ only: { phase: "validate", failure, judge: () => allow() } }));
  const faults: object[] = [];
  const log: Log = { ...SILENT, error: (facts) => faults.push(facts) };
  const broken = () => {
    throw new Error("clockwork");
  };
  const reply = now(new ReviewHandler({ source, log, now: broken }).handle(BODY, "/validate/only"));
  expect(responseOf(reply)).toMatchObject({ allowed });
  expect(reply.body).toContain("USHER-E01");
  expect(reply.body).not.toContain("clockwork");
  expect(faults).toMatchObject([{ error: "clockwork" }]);
});

test("answers a fault that occurs while waiting", async () => {
  // Not a list of facts: the engine itself throws.
  const source = testSource({ fetch: async () => null as unknown as [] });
  const faults: string[] = [];
  const log: Log = { ...SILENT, error: (_facts, message) => faults.push(message) };
  const response = responseOf(await ask("/validate/pool", source, BODY, log));
  expect(response).toMatchObject({ allowed: false, status: { code: 500 } });
  expect(faults).toEqual(["internal error handling admission request"]);
});

test("handles an object of the maximum depth", () => {
  const depth = NESTING_LIMIT - 10;
  const metadata = `{"name":"web","annotations":{"deep":${"[".repeat(depth)}${"]".repeat(depth)}}}`;
  const body = JSON.stringify(review()).replace('{"name":"web","namespace":"shop"}', metadata);
  expect(body).toContain("deep");
  for (const path of ["/mutate", "/validate/welcome"]) {
    const response = responseOf(now(ask(path, testSource(), Buffer.from(body))));
    expect(response).toHaveProperty("allowed");
  }
});

describe("a review that is too large", () => {
  const DEPTH = NESTING_LIMIT + 1;
  const deep = `${"[".repeat(DEPTH)}${"]".repeat(DEPTH)}`;
  const large = (object: string) =>
    Buffer.from(JSON.stringify(review({ object: "here" })).replace('"here"', object));

  test.each([
    ["nested too deeply", large(deep), "the body is nested deeper than 1000 levels"],
    [
      "too large to be parsed",
      large(`[${"{},".repeat(1_000_000)}1]`),
      "the body takes more than 67108864 bytes of memory",
    ],
  ])("is denied by a guarding hook, and passes another with a warning: %s", (_, body, why) => {
    const denied = responseOf(now(ask("/validate/welcome", testSource(), body)));
    expect(denied).toMatchObject({
      allowed: false,
      status: {
        code: 413,
        reason: "RequestEntityTooLarge",
        message: `Pod shop/web is too large for module tiny to read: ${why}; make the object smaller (USHER-E05)`,
        details: { name: "web", group: "", kind: "pods" },
      },
    });
    const passed = responseOf(now(ask("/mutate/label", testSource(), body)));
    expect(passed).toMatchObject({ allowed: true, warnings: [expect.stringContaining(why)] });
    expect(passed).not.toHaveProperty("patch");
  });

  test("is counted and logged like other denials, unless its caller is not trusted", () => {
    for (const isTrusted of [true, false]) {
      const [counts, said]: [Count[], object[]] = [[], []];
      const log = { ...SILENT, info: (facts: object) => said.push(facts) };
      const { handle } = new ReviewHandler({ source: testSource(), log, acceptsToken: () => isTrusted });
      const { evaluation } = now(handle(large(deep), "/validate/welcome"));
      if (evaluation === undefined) throw new Error("not evaluated");
      afterResponse({ log, count: (steps) => counts.push(...steps) })(evaluation);
      expect(said).toMatchObject([
        {
          object: "Pod shop/web",
          user: "ann",
          denials: [{ hook: "welcome", code: 413 }],
          dryRun: !isTrusted,
        },
      ]);
      expect(counts.map(({ metric, labels }) => [metric, ...Object.values(labels)].join(" "))).toEqual(
        isTrusted
          ? ["usher_decisions_total welcome validate deny", "usher_findings_total tiny size violated"]
          : [],
      );
    }
  });

  test("is refused without a readable envelope", () => {
    expect(now(ask("/validate/welcome", testSource(), Buffer.from(deep)))).toMatchObject({
      status: 413,
      body: "the body is nested deeper than 1000 levels\n",
    });
  });

  test("is not parsed while other large ones wait, and does not affect small ones", async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const found = async () => {
      await promise;
      return [{ found: {}, complete: true }] as const;
    };
    const { handle } = new ReviewHandler({ source: testSource({ fetch: found }), log: SILENT });
    // Half of the available memory.
    const half = large(`{"metadata":{},"list":[${"{},".repeat(390_000)}1]}`);
    const waiting = [half, half].map((body) => handle(body, "/validate/pool?timeout=30s"));
    const third = responseOf(now(handle(half, "/validate/pool?timeout=30s")));
    expect(third).toMatchObject({
      status: { code: 413, message: expect.stringContaining("other large requests take the memory") },
    });
    expect(responseOf(now(handle(BODY, "/validate/welcome")))).toMatchObject({ allowed: true });
    resolve();
    for (const reply of await Promise.all(waiting))
      expect(responseOf(reply)).toMatchObject({ allowed: true });
    const again = handle(half, "/validate/pool?timeout=30s");
    expect(responseOf(await again)).toMatchObject({ allowed: true });
  });
});

test("returns lone surrogates as valid JSON", () => {
  const body = JSON.stringify(review()).replace('"uid":"705ab4f5', '"uid":"\\ud800');
  const reply = now(ask("/validate/welcome", testSource(), Buffer.from(body)));
  expect(Buffer.from(reply.body).toString()).toBe(reply.body);
  expect(responseOf(reply)["uid"]).toMatch(/^\ud800/);
});

test("looks hooks up at the time of the request", () => {
  const source = { ...testSource() };
  const { handle } = new ReviewHandler({ source, log: SILENT });
  expect(now(handle(BODY, "/validate/late")).status).toBe(404);
  const behaviours = { ...BEHAVIOURS, late: { phase: "validate", judge: () => allow() } } as const;
  source.assembly = testSource({}, testModule(behaviours)).assembly;
  expect(now(handle(BODY, "/validate/late")).status).toBe(200);
});
