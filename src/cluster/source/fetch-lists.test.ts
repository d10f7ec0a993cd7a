import { expect, test } from "vitest";
import { answerOf, refuse, TestApiServer, testDeadline } from "../../../test/support/cluster/api-server.ts";
import type { Need } from "../../core/decision/need.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { ListMemory } from "../client/list-memory.ts";
import { createNeeds } from "./fetch-needs.ts";

function listOf(limit: number, share = 1): Need {
  return { list: { resource: "pods", namespace: "shop", labelSelector: "app=web" }, limit, share };
}

function serverWithPods(count: number): TestApiServer {
  const server = new TestApiServer();
  for (let i = 0; i < count; i++) server.put(`/api/v1/namespaces/shop/pods/p${i}`, {});
  return server;
}

function asking(server: TestApiServer) {
  return createNeeds(server.client, server.resources);
}

test("a list is read in pages up to its limit, and reports whether it is complete", async () => {
  const server = serverWithPods(250);
  const [whole, cut, exact] = await asking(server)([listOf(1_000), listOf(120), listOf(250)], testDeadline());
  expect(whole).toMatchObject({ complete: true, found: { length: 250 } });
  expect(cut).toMatchObject({ complete: false, found: { length: 120 } });
  expect(exact).toMatchObject({ complete: true, found: { length: 250 } });
  expect(whole).toMatchObject({ found: { 0: { apiVersion: "v1", kind: "Thing" } } });
  expect(server.asked[0]).toBe("GET /api/v1/namespaces/shop/pods?labelSelector=app%3Dweb&limit=25");
});

test("a list continues from a token, with field selectors, and is complete on request", async () => {
  const server = serverWithPods(150);
  server.put("/api/v1/namespaces/shop/pods/p0", { metadata: { managedFields: [{ manager: "kubelet" }] } });
  const list = { resource: "pods", namespace: "shop", fieldSelector: "spec.nodeName=", managers: true };
  const ask = asking(server);
  const [first] = await ask([{ list, limit: 100, share: 1 }], testDeadline());
  expect(first).toMatchObject({ complete: false, next: expect.any(String), found: { length: 100 } });
  expect(JSON.stringify(first)).toContain("kubelet");
  const next = first !== undefined && "found" in first ? (first.next ?? "") : "";
  const [second] = await ask([{ list: { ...list, continue: next }, limit: 100, share: 1 }], testDeadline());
  expect(second).toMatchObject({ complete: true, found: { length: 50 } });
  const asked = (limit: number, from: string) =>
    `GET /api/v1/namespaces/shop/pods?fieldSelector=spec.nodeName%3D&limit=${limit}&continue=${from}`;
  expect(server.asked).toEqual([
    "GET /api/v1/namespaces/shop/pods?fieldSelector=spec.nodeName%3D&limit=25",
    asked(50, "25"),
    asked(25, "75"),
    asked(25, next),
    asked(50, "125"),
  ]);
});

test("a list whose share of the time runs out returns its objects as incomplete", async () => {
  const server = serverWithPods(250);
  let pages = 0;
  server.fault = () => (pages++ === 1 ? new Promise(() => undefined) : undefined);
  const [fact] = await asking(server)([listOf(1_000, 0.1)], testDeadline(2_000));
  expect(fact).toMatchObject({ complete: false, found: { length: 25 } });
});

test("a list without any object read in time has failed", async () => {
  const server = serverWithPods(5);
  server.fault = () => new Promise(() => undefined);
  const [fact] = await asking(server)([listOf(10, 0.05)], testDeadline(2_000));
  expect(fact).toMatchObject({ failed: expect.stringContaining("list of pods in shop") });
});

test.each<[string, number, object, object]>([
  ["complete: exact, with any selector", 250, { labelSelector: "app=web" }, { complete: true, total: 150 }],
  ["cut without selectors: with the API server's estimate", 120, {}, { complete: false, total: 150 }],
  ["cut within a page", 1, {}, { complete: false, total: 150 }],
  ["cut with a selector: unknown", 120, { labelSelector: "app=web" }, { complete: false }],
])("the total of a list: %s", async (_, limit, selectors, expected) => {
  const list = { resource: "pods", namespace: "shop", ...selectors };
  const [fact] = await asking(serverWithPods(150))([{ list, limit, share: 1 }], testDeadline());
  const { found: _found, next: _next, ...rest } = fact as Record<string, unknown>;
  expect(rest).toEqual(expected);
});

test("the total of a list is that of the last page that was read", async () => {
  const server = serverWithPods(250);
  let pages = 0;
  server.fault = () => (pages++ === 1 ? refuse(410, "Expired") : undefined);
  const list = { resource: "pods", namespace: "shop" };
  const [fact] = await asking(server)([{ list, limit: 1_000, share: 1 }], testDeadline());
  expect(fact).toMatchObject({ complete: false, found: { length: 25 }, total: 250 });
});

test.each<[string, unknown]>([
  ["negative", -1],
  ["a text", "12"],
  ["a fraction", 0.5],
])("ignores an estimate that is %s", async (_, remainingItemCount) => {
  const server = new TestApiServer();
  const metadata = { continue: "x", remainingItemCount: remainingItemCount as number };
  server.fault = () => answerOf(200, { kind: "PodList", metadata, items: [{}] });
  const list = { resource: "pods" };
  const [fact] = await asking(server)([{ list, limit: 1, share: 1 }], testDeadline());
  expect(fact).toEqual({ found: [{ kind: "Pod" }].map(() => expect.anything()), complete: false, next: "x" });
});

test("an answer without items is a failure, never an empty list", async () => {
  const server = new TestApiServer();
  server.fault = () => answerOf(200, { kind: "Status" });
  const [fact] = await asking(server)([listOf(10)], testDeadline());
  expect(fact).toMatchObject({ failed: expect.stringContaining("not a list"), status: 200 });
});

test("a timeout in milliseconds ends a list before its share does", async () => {
  const server = serverWithPods(250);
  let pages = 0;
  server.fault = () => (pages++ === 1 ? new Promise(() => undefined) : undefined);
  const started = performance.now();
  const [fact] = await asking(server)([{ ...listOf(1_000), timeoutMs: 100 } as Need], testDeadline(60_000));
  expect(fact).toMatchObject({ complete: false, found: { length: 25 } });
  expect(performance.now() - started).toBeLessThan(10_000);
});

/** Pods of this many characters each, and the memory of the requested lists. */
function fatPods(count: number, size: number, more: (i: number) => JsonObject = () => ({})) {
  const server = new TestApiServer();
  for (let i = 0; i < count; i++)
    server.put(`/api/v1/namespaces/shop/pods/p${i}`, { spec: { text: "x".repeat(size) }, ...more(i) });
  const logged: object[] = [];
  const log = { warn: (facts: object) => void logged.push(facts) } as unknown as Log;
  const memory = new ListMemory(log);
  return { server, logged, memory, ask: createNeeds(server.client, server.resources, undefined, memory) };
}

const PODS = { resource: "pods", namespace: "shop" };

test("a list that exhausts the memory ends as if by its limit, is counted, and can be continued", async () => {
  const { memory, ask } = fatPods(60, 1_000_000);
  const [first] = await ask([{ list: PODS, limit: 100, share: 1 }], testDeadline());
  expect(first).toMatchObject({
    complete: false,
    total: 60,
    next: expect.any(String),
    found: { length: 43 },
  });
  expect(memory.cuts).toEqual([{ resource: "pods", what: "list", count: 1 }]);
  const next = first !== undefined && "found" in first ? (first.next ?? "") : "";
  const rest: Need = { list: { ...PODS, continue: next }, limit: 100, share: 1 };
  expect(await ask([rest], testDeadline())).toMatchObject([{ complete: true, found: { length: 17 } }]);
  expect(memory.full).toBe(false);
});

test("concurrent lists share the memory", async () => {
  const { ask } = fatPods(60, 1_000_000);
  const needs = [90, 91, 92, 93].map((limit): Need => ({ list: PODS, limit, share: 1 }));
  const facts = await ask(needs, testDeadline());
  const found = facts.map((fact) => ("found" in fact ? (fact.found as readonly unknown[]).length : 0));
  // Alone each of them gets 43. The first that ends frees memory for the others.
  expect(Math.min(...found)).toBeLessThan(20);
  expect(facts.every((fact) => !("complete" in fact && fact.complete))).toBe(true);
});

test("managed fields that are not requested take no memory", async () => {
  const managedFields = ["x".repeat(1_000_000)];
  const { memory, ask } = fatPods(60, 10, () => ({ metadata: { managedFields } }));
  const need: Need = { list: PODS, limit: 100, share: 1 };
  expect(await ask([need], testDeadline())).toMatchObject([{ complete: true, found: { length: 60 } }]);
  expect(memory.cuts).toEqual([]);
});

test("an object that is too large is left out, named in the log and counted, and the list is incomplete", async () => {
  const { memory, logged, ask } = fatPods(3, 10, (i) =>
    i === 1 ? { spec: { text: "x".repeat(17_000_000) } } : {},
  );
  const [fact] = await ask([{ list: PODS, limit: 100, share: 1 }], testDeadline());
  expect(fact).toMatchObject({ complete: false, found: { length: 2 } });
  expect(fact).not.toHaveProperty("next");
  expect(memory.cuts).toEqual([{ resource: "pods", what: "object", count: 1 }]);
  expect(logged).toEqual([{ resource: "pods", namespace: "", name: "p1" }]);
});
