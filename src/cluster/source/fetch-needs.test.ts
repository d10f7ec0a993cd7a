import { expect, test } from "vitest";
import {
  answerOf,
  NO_SUCH_API,
  refuse,
  TestApiServer,
  testDeadline,
} from "../../../test/support/cluster/api-server.ts";
import type { Need } from "../../core/evaluate/need.ts";
import { type ApiResponse, ConnectionError } from "../client/client.ts";
import { createNeeds } from "./fetch-needs.ts";

const NODE: Need = { get: { resource: "nodes", name: "n1" }, live: true };

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

test("an object is found, without the record of who manages its fields", async () => {
  const server = new TestApiServer();
  server.put("/api/v1/nodes/n1", { metadata: { managedFields: [{ manager: "kubelet" }], uid: "u" } });
  expect(await asking(server)([NODE], testDeadline())).toEqual([
    { found: { metadata: { uid: "u", name: "n1", resourceVersion: "101" } }, complete: true },
  ]);
});

test.each<[string, ApiResponse | Error | undefined, object]>([
  ["an object that is not there is absent", undefined, { absent: true }],
  [
    "an API that is not there is a failure, not an absence",
    NO_SUCH_API,
    { failed: "nodes n1: the API server does not serve nodes" },
  ],
  [
    "nor is a 404 about something else",
    refuse(404, "NotFound"),
    { failed: "nodes n1: the API server answered 404: refused: NotFound" },
  ],
  [
    "a refusal is told in the API server's words",
    refuse(403, "Forbidden", "n1"),
    { failed: "nodes n1: the API server answered 403: refused: Forbidden" },
  ],
  [
    "a broken connection is a failure",
    new ConnectionError("socket hang up"),
    { failed: "nodes n1: no answer: socket hang up" },
  ],
])("%s", async (_, fault, fact) => {
  const server = new TestApiServer();
  server.fault = () => fault;
  expect(await asking(server)([NODE], testDeadline())).toEqual([fact]);
});

test("a resource that can't be named fails and does not reject", async () => {
  const server = new TestApiServer();
  const resources = { ...server.resources, pathOf: () => Promise.reject(new Error("things are not served")) };
  const fetch = createNeeds(server.client, resources);
  expect(await fetch([NODE, listOf(3)], testDeadline())).toEqual([
    { failed: "nodes n1: things are not served" },
    { failed: "list of pods in shop: things are not served" },
  ]);
});

test("facts come in the order of the needs, and are fetched side by side", async () => {
  const server = serverWithPods(1);
  const both = Promise.withResolvers<undefined>();
  let waiting = 0;
  server.fault = () => {
    waiting += 1;
    if (waiting === 2) both.resolve(undefined);
    return both.promise;
  };
  const pod: Need = { get: { resource: "pods", namespace: "shop", name: "p0" }, live: true };
  const facts = await asking(server)([NODE, pod], testDeadline());
  expect(facts).toMatchObject([{ absent: true }, { found: { metadata: { name: "p0" } } }]);
});

test("a list is read in pages up to its limit, and says whether it is whole", async () => {
  const server = serverWithPods(250);
  const [whole, cut, exact] = await asking(server)([listOf(1_000), listOf(120), listOf(250)], testDeadline());
  expect(whole).toMatchObject({ complete: true, found: { length: 250 } });
  expect(cut).toMatchObject({ complete: false, found: { length: 120 } });
  expect(exact).toMatchObject({ complete: true, found: { length: 250 } });
  expect(whole).toMatchObject({ found: { 0: { apiVersion: "v1", kind: "Thing" } } });
  expect(server.asked[0]).toBe("GET /api/v1/namespaces/shop/pods?labelSelector=app%3Dweb&limit=100");
});

test("a list goes on where an earlier one stopped, by fields as well, and whole where it is asked for", async () => {
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
  expect(server.asked).toEqual([
    "GET /api/v1/namespaces/shop/pods?fieldSelector=spec.nodeName%3D&limit=100",
    `GET /api/v1/namespaces/shop/pods?fieldSelector=spec.nodeName%3D&limit=100&continue=${next}`,
  ]);
});

test("a list whose share of the time runs out gives what it has, as incomplete", async () => {
  const server = serverWithPods(250);
  let pages = 0;
  server.fault = () => (pages++ === 1 ? new Promise(() => undefined) : undefined);
  const [fact] = await asking(server)([listOf(1_000, 0.1)], testDeadline(2_000));
  expect(fact).toMatchObject({ complete: false, found: { length: 100 } });
});

test("a list of which nothing was read in time has failed", async () => {
  const server = serverWithPods(5);
  server.fault = () => new Promise(() => undefined);
  const [fact] = await asking(server)([listOf(10, 0.05)], testDeadline(2_000));
  expect(fact).toMatchObject({ failed: expect.stringContaining("list of pods in shop") });
});

test("an access review answers with its status", async () => {
  const server = new TestApiServer();
  server.fault = (_, path, { body }) => {
    expect(path).toBe("/apis/authorization.k8s.io/v1/subjectaccessreviews");
    expect(body).toMatchObject({ kind: "SubjectAccessReview", spec: { user: "ann" } });
    return answerOf(201, { status: { allowed: true, reason: "RBAC" } });
  };
  expect(await asking(server)([{ access: { user: "ann" } }], testDeadline())).toEqual([
    { found: { allowed: true, reason: "RBAC" }, complete: true },
  ]);
});

test("a busy API server is asked again within the deadline", async () => {
  const server = new TestApiServer();
  let asked = 0;
  server.fault = () =>
    asked++ === 0 ? refuse(429, "TooManyRequests", undefined, { "retry-after": "1" }) : undefined;
  expect(await asking(server)([NODE], testDeadline())).toEqual([{ absent: true }]);
  asked = 0;
  expect(await asking(server)([NODE], testDeadline(500))).toEqual([
    { failed: "nodes n1: the API server answered 429: refused: TooManyRequests" },
  ]);
});

test("whoever leaves is answered at once, and the read that nobody wants is given up", async () => {
  const server = new TestApiServer();
  let given: AbortSignal | undefined;
  server.fault = (_, __, { signal }) => {
    given = signal;
    return new Promise(() => undefined);
  };
  const deadline = testDeadline();
  const facts = asking(server)([NODE], deadline);
  deadline.end();
  expect(await facts).toEqual([{ failed: "the time for this request ran out" }]);
  expect(given?.aborted).toBe(true);
  expect(await asking(server)([NODE], deadline)).toEqual([{ failed: "the time for this request ran out" }]);
});

test("equal needs of many requests share a read, but never one that was sent before they asked", async () => {
  const server = new TestApiServer();
  server.put("/api/v1/nodes/n1", { spec: { unschedulable: false } });
  const fetch = asking(server);
  const first = Promise.withResolvers<undefined>();
  let reads = 0;
  server.fault = () => {
    reads += 1;
    return reads === 1 ? first.promise : undefined;
  };
  const early = fetch([NODE], testDeadline());
  // Read for the first one, and on its way back, while the node changes.
  const old = server.objects.get("/api/v1/nodes/n1") ?? {};
  server.put("/api/v1/nodes/n1", { spec: { unschedulable: true } });
  const late = [1, 2, 3, 4].map(() => fetch([NODE], testDeadline()));
  first.resolve(answerOf(200, old) as never);
  expect(await early).toMatchObject([{ found: { spec: { unschedulable: false } } }]);
  for (const facts of await Promise.all(late))
    expect(facts).toMatchObject([{ found: { spec: { unschedulable: true } } }]);
  expect(reads).toBe(2);
});

test("who waited for the next read and left takes nobody with him", async () => {
  const server = new TestApiServer();
  server.put("/api/v1/nodes/n1", {});
  const fetch = asking(server);
  const gate = Promise.withResolvers<undefined>();
  server.fault = () => gate.promise;
  const first = fetch([NODE], testDeadline());
  const leaver = testDeadline();
  const gone = fetch([NODE], leaver);
  leaver.end();
  const late = fetch([NODE], testDeadline());
  gate.resolve(undefined);
  expect(await gone).toMatchObject([{ failed: expect.any(String) }]);
  expect(await first).toMatchObject([{ complete: true }]);
  expect(await late).toMatchObject([{ complete: true }]);
});

test("one of several who share a read may leave; the others get their answer", async () => {
  const server = new TestApiServer();
  server.put("/api/v1/nodes/n1", {});
  const fetch = asking(server);
  const gate = Promise.withResolvers<undefined>();
  server.fault = () => gate.promise;
  const leaver = testDeadline();
  const [first, gone, stays] = [
    fetch([NODE], testDeadline()),
    fetch([NODE], leaver),
    fetch([NODE], testDeadline()),
  ];
  leaver.end();
  gate.resolve(undefined);
  expect(await gone).toMatchObject([{ failed: expect.any(String) }]);
  expect(await first).toMatchObject([{ complete: true }]);
  expect(await stays).toMatchObject([{ complete: true }]);
});
