import { setImmediate as step } from "node:timers/promises";
import fc from "fast-check";
import { expect, test } from "vitest";
import { answerOf, refuse, TestApiServer, testDeadline } from "../../../test/support/cluster/api-server.ts";
import type { Commit } from "../../core/decision/decision.ts";
import type { Fact, Need } from "../../core/decision/need.ts";
import type { Deadline } from "../../core/evaluate/source.ts";
import { at, isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { ConnectionError } from "../client/client.ts";
import { createNeeds } from "../source/fetch-needs.ts";
import { CommitBatchers, createCommits } from "./commit-batchers.ts";

const PATH = "/api/v1/namespaces/usher/ledgers/ann";
const LEDGER = { resource: "ledgers", namespace: "usher", name: "ann" };
const NEED: Need = { get: LEDGER, live: true };

interface Process {
  readonly batchers: CommitBatchers;
  readonly fetch: (deadline: Deadline, need?: Need) => Promise<Fact>;
  readonly commit: (commit: Commit, deadline: Deadline) => Promise<unknown>;
}

function processOn(server: TestApiServer): Process {
  const batchers = new CommitBatchers(server.client, server.resources);
  const needs = createNeeds(server.client, server.resources, batchers);
  const fetch = async (deadline: Deadline, need = NEED) =>
    (await needs([need], deadline))[0] ?? { failed: "no fact" };
  return { batchers, fetch, commit: createCommits(batchers) };
}

/** The next state: one more name in it. */
function adding(fact: Fact, name: string): Commit {
  const stored: JsonObject = "found" in fact && isObject(fact.found) ? fact.found : {};
  const data = isObject(stored["data"]) ? stored["data"] : {};
  const resourceVersion = stringAt(stored, "metadata", "resourceVersion");
  return { ...LEDGER, object: { ...stored, data: { ...data, [name]: "" } }, resourceVersion, rests: NEED };
}

function namesIn(server: TestApiServer): string[] {
  return Object.keys((at(server.objects.get(PATH), "data") as JsonObject | undefined) ?? {});
}

/** One request as core runs it: fetches, evaluates, commits, and repeats after a conflict. */
async function reserve(
  { fetch, commit }: Process,
  name: string,
  limit: number,
  deadline = testDeadline(),
): Promise<string> {
  try {
    for (let attempts = 1; attempts <= 10; attempts++) {
      const fact = await fetch(deadline);
      if ("failed" in fact) return fact.failed;
      const next = adding(fact, name);
      if (Object.keys(at(next.object, "data") as JsonObject).length > limit) return "full";
      const result = await commit(next, deadline);
      if (result === "done") return "done";
      if (result !== "conflict") return JSON.stringify(result);
    }
    return "too many conflicts";
  } finally {
    deadline.end();
  }
}

function tally(results: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const result of results) counts[result] = (counts[result] ?? 0) + 1;
  return counts;
}

const names = (count: number, prefix = "p") => Array.from({ length: count }, (_, i) => `${prefix}${i}`);

test("a single request reads and writes once", async () => {
  const server = new TestApiServer();
  expect(await reserve(processOn(server), "pod", 5)).toBe("done");
  expect(server.answered).toEqual(["GET 404", "POST 201"]);
  expect(namesIn(server)).toEqual(["pod"]);
});

test("a write carries the stored version and never an unwritten one", async () => {
  const server = new TestApiServer();
  server.put(PATH, {});
  const process = processOn(server);
  await Promise.all(names(5).map((name) => reserve(process, name, 9)));
  const versions = server.bodies.map((body) => stringAt(body, "metadata", "resourceVersion"));
  expect(versions.length).toBeGreaterThan(1);
  for (const version of versions) expect(version).toMatch(/^\d+$/);
});

test("concurrent requests of one replica are written in a few batches without conflicts", async () => {
  const server = new TestApiServer();
  server.put(PATH, {});
  const process = processOn(server);
  const results = await Promise.all(names(100).map((name) => reserve(process, name, 60)));
  expect(tally(results)).toEqual({ done: 60, full: 40 });
  expect(namesIn(server)).toHaveLength(60);
  expect(server.count("PUT 409")).toBe(0);
  expect(server.count("PUT 200")).toBeLessThan(5);
});

test.each([3, 12, 150])("three replicas with limit %i admit exactly that many of 150", async (limit) => {
  const server = new TestApiServer();
  const processes = [processOn(server), processOn(server), processOn(server)];
  const results = await Promise.all(
    processes.flatMap((process, i) => names(50, `${i}-`).map((name) => reserve(process, name, limit))),
  );
  expect(results.filter((result) => result === "done")).toHaveLength(limit);
  expect(namesIn(server)).toHaveLength(limit);
  expect(server.count("PUT 409") + server.count("POST 409")).toBeLessThan(30);
});

test("never exceeds the limit and counts every allowed request, for any replicas, requests, aborts, lost and broken writes", async () => {
  const fate = fc.constantFrom("fine", "fine", "fine", "broken before", "broken after", "slow");
  const plan = fc.record({
    limit: fc.integer({ min: 1, max: 12 }),
    processes: fc.array(fc.array(fc.option(fc.integer({ min: 0, max: 8 })), { maxLength: 12 }), {
      minLength: 1,
      maxLength: 3,
    }),
    fates: fc.array(fate, { maxLength: 12 }),
  });
  await fc.assert(
    fc.asyncProperty(plan, async ({ limit, processes, fates }) => {
      const server = new TestApiServer();
      const left = [...fates];
      server.fault = async (method, path, { body, signal }) => {
        const next = method === "GET" ? "fine" : (left.shift() ?? "fine");
        if (next === "broken before") return new ConnectionError("reset");
        if (next === "slow") for (let i = 0; i < 5; i++) await step();
        if (next === "broken after" && !signal?.aborted) {
          const known = stringAt(server.objects.get(PATH), "metadata", "resourceVersion");
          if (known === stringAt(body, "metadata", "resourceVersion") && isObject(body))
            server.put(PATH, body);
          return new ConnectionError(`reset after ${path}`);
        }
        return undefined;
      };
      const running = processes.flatMap((requests, p) => {
        const process = processOn(server);
        return requests.map(async (leavesAfter, i) => {
          const name = `${p}-${i}`;
          const deadline = testDeadline();
          const leaving = async () => {
            for (let steps = 0; steps < (leavesAfter ?? 0); steps++) await step();
            deadline.end();
          };
          if (leavesAfter !== null) void leaving();
          return { name, result: await reserve(process, name, limit, deadline) };
        });
      });
      const results = await Promise.all(running);
      const stored = namesIn(server);
      expect(stored.length).toBeLessThanOrEqual(limit);
      for (const { name, result } of results) if (result === "done") expect(stored).toContain(name);
    }),
    { numRuns: 150 },
  );
});

test("a request aborted before its batch was sent is not counted, and those behind it succeed", async () => {
  const server = new TestApiServer();
  server.put(PATH, {});
  const process = processOn(server);
  const release = Promise.withResolvers<undefined>();
  let held = 0;
  server.fault = (method) => (method === "PUT" && held++ === 0 ? release.promise : undefined);
  const first = reserve(process, "first", 9);
  await until(() => held === 1);
  const leaver = testDeadline();
  const gone = reserve(process, "gone", 9, leaver);
  const behind = reserve(process, "behind", 9);
  await until(() => process.batchers.size === 1);
  for (let i = 0; i < 10; i++) await step();
  leaver.end();
  release.resolve(undefined);
  expect(await Promise.all([first, behind])).toEqual(["done", "done"]);
  expect(await gone).toContain("request deadline exceeded");
  expect(namesIn(server)).toEqual(["first", "behind"]);
});

test("a write that no request waits for is aborted, and does not delay the next", async () => {
  const server = new TestApiServer();
  server.put(PATH, {});
  const process = processOn(server);
  let writes = 0;
  server.fault = (method) => (method === "PUT" && writes++ === 0 ? new Promise(() => undefined) : undefined);
  const leaver = testDeadline();
  const gone = reserve(process, "gone", 9, leaver);
  await until(() => writes === 1);
  leaver.end();
  expect(await gone).toContain("deadline exceeded");
  expect(await reserve(process, "next", 9)).toBe("done");
});

test("a write answered 429 is repeated after Retry-After, with commits that joined in the meantime", async () => {
  const server = new TestApiServer();
  server.put(PATH, {});
  const process = processOn(server);
  let writes = 0;
  server.fault = (method) =>
    method === "PUT" && writes++ === 0
      ? refuse(429, "TooManyRequests", undefined, { "retry-after": "1" })
      : undefined;
  const first = reserve(process, "first", 9);
  await until(() => writes === 1);
  const others = names(5).map((name) => reserve(process, name, 9));
  expect(tally(await Promise.all([first, ...others]))).toEqual({ done: 6 });
  expect(server.answered.filter((one) => one.startsWith("PUT"))).toEqual(["PUT 429", "PUT 200"]);
});

test("a rejected write is a failure with the API server's message, and not repeated", async () => {
  const server = new TestApiServer();
  server.put(PATH, {});
  server.fault = (method) => (method === "PUT" ? refuse(403, "Forbidden") : undefined);
  expect(await reserve(processOn(server), "pod", 9)).toBe(
    '{"failed":"writing ledgers usher/ann: the API server answered 403: refused: Forbidden"}',
  );
  expect(server.count("PUT 403")).toBe(1);
});

test("an outdated version conflicts without a request", async () => {
  const server = new TestApiServer();
  server.put(PATH, {});
  const process = processOn(server);
  const [one, other] = [testDeadline(), testDeadline()];
  const [fact, same] = [await process.fetch(one), await process.fetch(other)];
  const written = process.commit(adding(fact, "a"), one);
  expect(await process.commit(adding(same, "b"), other)).toBe("conflict");
  expect(await written).toBe("done");
  expect(server.answered).toEqual(["GET 200", "GET 200", "PUT 200"]);
});

/** A replica whose first write is in flight until another replica's write overtakes it. */
async function writing(name: string) {
  const server = new TestApiServer();
  server.put(PATH, {});
  const process = processOn(server);
  const release = Promise.withResolvers<undefined>();
  let writes = 0;
  server.fault = (method) => (method === "PUT" && writes++ === 0 ? release.promise : undefined);
  const deadline = testDeadline();
  const written = process.commit(adding(await process.fetch(deadline), name), deadline);
  await until(() => writes === 1);
  const overtake = (other: string) => {
    server.put(PATH, { data: { [other]: "" } });
    release.resolve(undefined);
  };
  return { server, process, written, overtake };
}

test("a commit based on a state that was never written conflicts, and its version is never sent", async () => {
  const { server, process, written, overtake } = await writing("first");
  const second = testDeadline();
  const unwritten = await process.fetch(second);
  expect(JSON.stringify(unwritten)).toContain("first");
  overtake("theirs");
  expect(await written).toBe("conflict");
  expect(await process.commit(adding(unwritten, "second"), second)).toBe("conflict");
  expect(server.answered).toEqual(["GET 200", "PUT 409"]);
});

test("the stored state is known once the writes in flight have ended", async () => {
  const { process, written, overtake } = await writing("first");
  const second = testDeadline();
  expect(await process.fetch(second)).toMatchObject({ unwritten: true, found: { data: { first: "" } } });
  let known: Fact | undefined;
  const stored = process.fetch(second, { ...NEED, written: true }).then((fact) => {
    known = fact;
  });
  // Its turn is over: other requests continue.
  const third = testDeadline();
  expect(await process.fetch(third)).toMatchObject({ unwritten: true });
  expect(known).toBeUndefined();
  overtake("theirs");
  expect(await written).toBe("conflict");
  await stored;
  expect(known).toMatchObject({ found: { data: { theirs: "" } } });
  expect(known).not.toHaveProperty("unwritten");
});

test("an unused turn is released when its request ends or fetches again", async () => {
  const server = new TestApiServer();
  server.put(PATH, {});
  const process = processOn(server);
  expect(await reserve(process, "opens the batcher", 9)).toBe("done");
  const [first, second, third] = [testDeadline(), testDeadline(), testDeadline()];
  await process.fetch(first);
  const waiting = process.fetch(second);
  first.end();
  await waiting;
  const next = process.fetch(third);
  const again = process.fetch(second);
  expect("found" in (await next)).toBe(true);
  third.end();
  expect("found" in (await again)).toBe(true);
});

test("an idle batcher reads again, and sees the writes of other replicas", async () => {
  const server = new TestApiServer();
  const process = processOn(server);
  await reserve(process, "mine", 9);
  server.put(PATH, { data: { mine: "", theirs: "" } });
  expect(process.batchers.size).toBe(1);
  const fact = await process.fetch(testDeadline());
  expect("found" in fact && Object.keys(at(fact.found, "data") as JsonObject)).toEqual(["mine", "theirs"]);
});

test("an object that was deleted in the meantime is created again", async () => {
  const server = new TestApiServer();
  server.put(PATH, {});
  const process = processOn(server);
  const deadline = testDeadline();
  const fact = await process.fetch(deadline);
  server.objects.delete(PATH);
  expect(await process.commit(adding(fact, "late"), deadline)).toBe("conflict");
  expect(await reserve(process, "pod", 9)).toBe("done");
  expect(server.count("POST 201")).toBe(1);
});

test("a failed read is the result of all waiting requests", async () => {
  const server = new TestApiServer();
  server.put(PATH, {});
  const process = processOn(server);
  await reserve(process, "opens the batcher", 9);
  server.fault = () => answerOf(500, { message: "etcd is away" });
  const results = await Promise.all(names(3).map((name) => reserve(process, name, 9)));
  expect(tally(results)).toEqual({ "ledgers usher/ann: the API server answered 500: etcd is away": 3 });
});

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await step();
}
