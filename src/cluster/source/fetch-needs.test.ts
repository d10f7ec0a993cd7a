import { expect, test } from "vitest";
import {
  answerOf,
  NO_SUCH_API,
  refuse,
  TestApiServer,
  testDeadline,
} from "../../../test/support/cluster/api-server.ts";
import type { Need } from "../../core/decision/need.ts";
import { type ApiResponse, ConnectionError } from "../client/client.ts";
import { DiscoveryError, NotServedError } from "../client/discovery.ts";
import { createNeeds } from "./fetch-needs.ts";

const NODE: Need = { get: { resource: "nodes", name: "n1" }, live: true };

function asking(server: TestApiServer) {
  return createNeeds(server.client, server.resources);
}

test("an object is found, without managedFields", async () => {
  const server = new TestApiServer();
  server.put("/api/v1/nodes/n1", { metadata: { managedFields: [{ manager: "kubelet" }], uid: "u" } });
  expect(await asking(server)([NODE], testDeadline())).toEqual([
    { found: { metadata: { uid: "u", name: "n1", resourceVersion: "101" } }, complete: true },
  ]);
});

test("an object of any version is read from the watch cache", async () => {
  const server = new TestApiServer();
  server.put("/api/v1/nodes/n1", {});
  await asking(server)([{ get: { resource: "nodes", name: "n1" }, anyVersion: true }, NODE], testDeadline());
  expect(server.asked).toEqual(["GET /api/v1/nodes/n1?resourceVersion=0", "GET /api/v1/nodes/n1"]);
});

test.each<[string, ApiResponse | Error | undefined, object]>([
  ["a missing object is absent", undefined, { absent: "NotFound" }],
  [
    "a 404 as text for a kind that discovery lists is a failure",
    NO_SUCH_API,
    { failed: "nodes n1: the API server answered 404: 404 page not found", status: 404 },
  ],
  [
    "so is a 404 about another object",
    refuse(404, "NotFound"),
    {
      failed: "nodes n1: the API server answered 404: refused: NotFound",
      status: 404,
      reason: "NotFound",
    },
  ],
  [
    "forbidden",
    refuse(403, "Forbidden", "n1"),
    {
      failed: "nodes n1: the API server answered 403: refused: Forbidden",
      status: 403,
      reason: "Forbidden",
    },
  ],
  [
    "another status code",
    refuse(500, "InternalError"),
    {
      failed: "nodes n1: the API server answered 500: refused: InternalError",
      status: 500,
      reason: "InternalError",
    },
  ],
  [
    "a broken connection has no status",
    new ConnectionError("socket hang up"),
    { failed: "nodes n1: no response: socket hang up" },
  ],
])("%s", async (_, fault, fact) => {
  const server = new TestApiServer();
  server.fault = () => fault;
  expect(await asking(server)([NODE], testDeadline())).toEqual([fact]);
});

test("a kind that discovery does not list is not served, for objects and for lists", async () => {
  const server = new TestApiServer();
  server.fault = () => NO_SUCH_API;
  server.unserved.add("nodes");
  const list: Need = { list: { resource: "nodes" }, limit: 3, share: 1 };
  const notServed = { absent: "NotServed" };
  expect(await asking(server)([NODE, list], testDeadline())).toEqual([notServed, notServed]);
  const pathOf = () => Promise.reject(new NotServedError("nodes", "https://test.invalid"));
  const unknown = createNeeds(server.client, { ...server.resources, pathOf });
  expect(await unknown([NODE, list], testDeadline())).toEqual([notServed, notServed]);
});

test("where discovery is refused, its status code is the fact's", async () => {
  const server = new TestApiServer();
  const pathOf = () => Promise.reject(new DiscoveryError("/apis/x.io", refuse(403, "Forbidden")));
  const fetch = createNeeds(server.client, { ...server.resources, pathOf });
  expect(await fetch([NODE], testDeadline())).toEqual([
    {
      failed: "nodes n1: discovery: GET /apis/x.io: the API server answered 403: refused: Forbidden",
      status: 403,
      reason: "Forbidden",
    },
  ]);
});

test("a resource that can't be resolved fails and does not reject", async () => {
  const server = new TestApiServer();
  const resources = { ...server.resources, pathOf: () => Promise.reject(new Error("things are not served")) };
  const fetch = createNeeds(server.client, resources);
  const list: Need = { list: { resource: "pods", namespace: "shop" }, limit: 3, share: 1 };
  expect(await fetch([NODE, list], testDeadline())).toEqual([
    { failed: "nodes n1: things are not served" },
    { failed: "list of pods in shop: things are not served" },
  ]);
});

test("facts come in the order of the needs, and are fetched in parallel", async () => {
  const server = new TestApiServer();
  server.put("/api/v1/namespaces/shop/pods/p0", {});
  const both = Promise.withResolvers<undefined>();
  let waiting = 0;
  server.fault = () => {
    waiting += 1;
    if (waiting === 2) both.resolve(undefined);
    return both.promise;
  };
  const pod: Need = { get: { resource: "pods", namespace: "shop", name: "p0" }, live: true };
  const facts = await asking(server)([NODE, pod], testDeadline());
  expect(facts).toMatchObject([{ absent: "NotFound" }, { found: { metadata: { name: "p0" } } }]);
});

test("an access review returns its status", async () => {
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

test("a busy API server is retried within the deadline", async () => {
  const server = new TestApiServer();
  let asked = 0;
  server.fault = () =>
    asked++ === 0 ? refuse(429, "TooManyRequests", undefined, { "retry-after": "1" }) : undefined;
  expect(await asking(server)([NODE], testDeadline())).toEqual([{ absent: "NotFound" }]);
  asked = 0;
  expect(await asking(server)([NODE], testDeadline(500))).toEqual([
    {
      failed: "nodes n1: the API server answered 429: refused: TooManyRequests",
      status: 429,
      reason: "TooManyRequests",
    },
  ]);
});

test("a caller that leaves is answered immediately, and a read without callers is aborted", async () => {
  const server = new TestApiServer();
  let given: AbortSignal | undefined;
  server.fault = (_, __, { signal }) => {
    given = signal;
    return new Promise(() => undefined);
  };
  const deadline = testDeadline();
  const facts = asking(server)([NODE], deadline);
  deadline.end();
  expect(await facts).toEqual([{ failed: "request deadline exceeded" }]);
  expect(given?.aborted).toBe(true);
  expect(await asking(server)([NODE], deadline)).toEqual([{ failed: "request deadline exceeded" }]);
});

test("equal needs of many requests share a read, but never one that was sent before", async () => {
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
  // Read for the first request, and in flight while the node changes.
  const old = server.objects.get("/api/v1/nodes/n1") ?? {};
  server.put("/api/v1/nodes/n1", { spec: { unschedulable: true } });
  const late = [1, 2, 3, 4].map(() => fetch([NODE], testDeadline()));
  first.resolve(answerOf(200, old) as never);
  expect(await early).toMatchObject([{ found: { spec: { unschedulable: false } } }]);
  for (const facts of await Promise.all(late))
    expect(facts).toMatchObject([{ found: { spec: { unschedulable: true } } }]);
  expect(reads).toBe(2);
});

test("a caller that leaves while waiting for the next read does not end it for others", async () => {
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

test("a caller that leaves a shared read does not end it for others", async () => {
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
