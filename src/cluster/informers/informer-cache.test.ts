import { setImmediate as round, setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { moduleThat } from "../../../test/builders/module.ts";
import { event, TestWatchServer } from "../../../test/support/cluster/watch-server.ts";
import { Gates } from "../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../core/installation/installation.ts";
import { stringAt } from "../../core/json.ts";
import { SILENT } from "../../core/log.ts";
import { Assembly } from "../../core/module/assembly.ts";
import type { Read } from "../../core/module/module.ts";
import type { Change } from "../../core/view/view.ts";
import { type InformerCache, openInformerCache } from "./informer-cache.ts";
import { REFLECTOR_LIMITS, type ReflectorLimits } from "./reflector-limits.ts";

/** Short delays for tests. */
const LIMITS: ReflectorLimits = {
  ...REFLECTOR_LIMITS,
  backoff: { firstMs: 2, longestMs: 10, forgetMs: 1_000 },
  notServedMs: 5,
  idleTimeoutMs: 5_000,
  pageLimit: 2,
};

const THINGS = "things.things.test";

function read(resource: string, more: Partial<Read> = {}): Read {
  const scope = "Cluster" as const;
  return { resource, group: "things.test", version: "v1", kind: "Thing", scope, keep: [["value"]], ...more };
}

let server: TestWatchServer;
let assembly: Assembly;
let cache: InformerCache;
let batches: (readonly Change[])[];

beforeEach(() => {
  server = new TestWatchServer();
  batches = [];
});
afterEach(() => cache.stop());

function open(reads: readonly Read[], limits: Partial<ReflectorLimits> = {}): InformerCache {
  assembly = new Assembly([{ ...moduleThat("reader", {}), reads }], DEFAULT_INSTALLATION, new Gates([]));
  cache = openInformerCache({
    client: server,
    assembly,
    log: SILENT,
    limits: { ...LIMITS, ...limits },
    changed: (changes) => batches.push(changes),
  });
  return cache;
}

const values = (resource = THINGS): Record<string, string> =>
  Object.fromEntries(
    [...assembly.view.list(resource)].map((object) => [
      stringAt(object, "metadata", "name") ?? "",
      stringAt(object, "value") ?? "",
    ]),
  );

async function until(done: () => boolean): Promise<void> {
  while (!done()) await sleep(2);
}

async function seen(expected: Record<string, string>, resource = THINGS): Promise<void> {
  await until(() => JSON.stringify(sorted(values(resource))) === JSON.stringify(sorted(expected)));
}

function sorted(record: Record<string, string>): [string, string][] {
  return Object.entries(record).sort(([a], [b]) => (a < b ? -1 : 1));
}

describe.each(["streams", "pages"])("an informer cache filled by %s", (how) => {
  beforeEach(() => {
    server.streaming = how === "streams";
    const things = server.history("things");
    for (const name of ["a", "b", "c", "d", "e"]) things.put(name, "1");
  });

  test("is ready when synced, and follows changes", async () => {
    open([read("things")]);
    expect(cache.ready).toBe(false);
    await cache.waitForSync();
    expect(cache.ready).toBe(true);
    expect(values()).toEqual({ a: "1", b: "1", c: "1", d: "1", e: "1" });
    server.history("things").put("a", "2");
    server.history("things").remove("b");
    await seen({ a: "2", c: "1", d: "1", e: "1" });
  });

  test("has equal objects from lists and from events", async () => {
    open([read("things")]);
    await cache.waitForSync();
    const before = assembly.view.get(THINGS, "", "a");
    expect(before).toEqual({
      apiVersion: "things.test/v1",
      kind: "Thing",
      metadata: { name: "a" },
      value: "1",
    });
    batches.length = 0;
    server.history("things").put("a", "1");
    server.history("things").put("b", "2");
    await until(() => batches.length > 0);
    expect(batches.flat().map(({ name }) => name)).toEqual(["b"]);
  });

  test.each([
    ["broken", undefined],
    ["too old, said in the stream", event("ERROR", { kind: "Status", code: 410, reason: "Expired" })],
    ["ended by an error of the server", event("ERROR", { kind: "Status", code: 500 })],
    ["unreadable", '{"type":"ADDED","object":{"meta'],
    ["of an unknown type", event("RENAMED", {})],
    ["without an object", '{"type":"ADDED"}'],
  ])("recovers after a watch that was %s", async (_, line) => {
    open([read("things")]);
    await cache.waitForSync();
    await until(() => server.streams === 1);
    server.break(line);
    server.history("things").remove("a");
    server.history("things").put("f", "1");
    await seen({ b: "1", c: "1", d: "1", e: "1", f: "1" });
    expect(cache.status()[0]?.errors).toBeGreaterThan(0);
  });

  test("recovers after an outage in which its version was compacted", async () => {
    open([read("things")]);
    await cache.waitForSync();
    await until(() => server.streams === 1);
    server.break();
    const things = server.history("things");
    things.remove("a");
    things.put("g", "1");
    things.compact();
    await seen({ b: "1", c: "1", d: "1", e: "1", g: "1" });
    expect(cache.status()[0]).toMatchObject({ relists: 1, objects: 5, synced: true });
  });

  test("keeps a watch that sends events within the idle timeout", async () => {
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    try {
      open([read("things")]);
      await cache.waitForSync();
      await until(() => server.streams === 1);
      const before = cache.status()[0]?.errors ?? 0;
      for (const value of ["2", "3", "4"]) {
        vi.advanceTimersByTime(LIMITS.idleTimeoutMs - 1);
        server.history("things").put("a", value);
        await seen({ a: value, b: "1", c: "1", d: "1", e: "1" });
      }
      expect(cache.status()[0]?.errors).toBe(before);
      vi.advanceTimersByTime(LIMITS.idleTimeoutMs);
      await until(() => cache.status()[0]?.errors === before + 1);
      expect(cache.status()[0]?.lastError).toContain("no event within");
    } finally {
      vi.useRealTimers();
    }
  });

  test("replaces a watch that exceeds the idle timeout", async () => {
    open([read("things")], { idleTimeoutMs: 40 });
    await cache.waitForSync();
    server.silent = true;
    server.history("things").put("a", "2");
    await until(() => cache.status()[0]?.lastError?.includes("no event within") === true);
    server.silent = false;
    await seen({ a: "2", b: "1", c: "1", d: "1", e: "1" });
    expect(cache.status()[0]?.relists).toBe(0);
  });
});

describe("a resource that is not served", () => {
  test("does not block readiness if it is optional, and arrives in one batch", async () => {
    server.history("things").put("a", "1");
    open([read("things"), read("others", { optional: true })]);
    await cache.waitForSync();
    expect(assembly.view.served("others.things.test")).toBe(false);
    batches.length = 0;
    const others = server.history("others");
    for (let i = 0; i < 200; i++) others.put(`o-${i}`, "1");
    await until(() => assembly.view.served("others.things.test"));
    expect(assembly.view.count("others.things.test")).toBe(200);
    expect(batches.map(({ length }) => length)).toEqual([200]);
  });

  test("blocks readiness if it is required, until it is served", async () => {
    server.history("things").put("a", "1");
    open([read("things"), read("others")]);
    await until(() => cache.status().every(({ served }) => served !== undefined));
    await until(() => assembly.view.count(THINGS) === 1);
    expect(cache.ready).toBe(false);
    expect(cache.status().find(({ served }) => served === false)?.resource).toBe("others.things.test");
    server.history("others");
    await cache.waitForSync();
    expect(assembly.view.served("others.things.test")).toBe(true);
    expect(assembly.view.count("others.things.test")).toBe(0);
  });

  test("is removed from the view with its objects", async () => {
    server.history("things").put("a", "1");
    open([read("things")]);
    await cache.waitForSync();
    server.uninstall("things");
    server.break();
    await seen({});
    expect(cache.ready).toBe(true);
  });
});

test("keeps only the paths that modules read, and a selector that all modules share", async () => {
  server.history("things").put("a", "1");
  server.history("others").put("b", "1");
  open([
    read("things", { keep: [], labelSelector: "x=y" }),
    read("others", { labelSelector: "x=y" }),
    read("others", { keep: [["metadata", "resourceVersion"]] }),
  ]);
  await cache.waitForSync();
  expect(assembly.view.get(THINGS, "", "a")).not.toHaveProperty("value");
  expect(assembly.view.get("others.things.test", "", "b")).toMatchObject({
    value: "1",
    metadata: { resourceVersion: "2" },
  });
  const selected = server.asked.filter((path) => path.includes("labelSelector=x%3Dy"));
  expect(selected.every((path) => path.startsWith("/apis/things.test/v1/things?"))).toBe(true);
  expect(selected.length).toBeGreaterThan(0);
});

test("reads one object by its name, if no module reads more", async () => {
  server.history("things").put("a", "1");
  server.history("others").put("b", "1");
  open([read("things", { name: "a" }), read("others", { name: "b" }), read("others", {})]);
  await cache.waitForSync();
  const named = server.asked.filter((path) => path.includes("fieldSelector=metadata.name%3Da"));
  expect(named.length).toBeGreaterThan(0);
  expect(server.asked.filter((path) => path.includes("/things?")).toSorted()).toEqual(named.toSorted());
  expect(server.asked.some((path) => path.includes("/others?") && path.includes("fieldSelector"))).toBe(
    false,
  );
});

test("reads leader-only resources while leading", async () => {
  server.history("things").put("a", "1");
  open([read("things", { leaderOnly: true })]);
  expect(cache.ready).toBe(true);
  expect(cache.status()).toEqual([]);
  await cache.startLeading();
  expect(values()).toEqual({ a: "1" });
  await cache.stopLeading();
  expect(values()).toEqual({});
  expect(server.streams).toBe(0);
});

test("stopping to lead rejects the waiters of leader-only resources, and no others", async () => {
  open([read("missing"), read("things", { leaderOnly: true })]);
  const leading = expect(cache.startLeading()).rejects.toThrow("stopped leading before");
  const synced = cache.waitForSync();
  await cache.stopLeading();
  await leading;
  server.history("missing").put("a", "1");
  await synced;
});

test("leaves the resources of other sources to them", async () => {
  server.history("things").put("a", "1");
  server.history("others").put("b", "1");
  assembly = new Assembly(
    [{ ...moduleThat("reader", {}), reads: [read("things"), read("others")] }],
    DEFAULT_INSTALLATION,
    new Gates([]),
  );
  cache = openInformerCache({
    client: server,
    assembly,
    log: SILENT,
    owns: (resource) => resource === THINGS,
  });
  await cache.waitForSync();
  expect(values()).toEqual({ a: "1" });
  expect(assembly.view.served("others.things.test")).toBe(false);
});

test("stopping ends all requests and rejects waiters", async () => {
  server.history("things").put("a", "1");
  open([read("things"), read("missing")]);
  await until(() => server.streams === 1);
  const waiting = expect(cache.waitForSync()).rejects.toThrow("stopped");
  await cache.stop();
  await waiting;
  expect(server.streams).toBe(0);
  const asked = server.asked.length;
  await sleep(30);
  expect(server.asked).toHaveLength(asked);
});

test("applies many objects in small batches between which the event loop runs", async () => {
  const things = server.history("things");
  for (let i = 0; i < 400; i++) things.put(`t-${i}`, "1");
  open([read("things")]);
  let rounds = 0;
  while (!cache.ready) {
    await round();
    rounds += 1;
  }
  expect(Math.max(...batches.map(({ length }) => length))).toBeLessThanOrEqual(50);
  expect(rounds).toBeGreaterThan(1);
});
