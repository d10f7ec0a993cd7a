import { describe, expect, test, vi } from "vitest";
import { refuse, TestApiServer } from "../../../test/support/cluster/api-server.ts";
import type { EventToWrite } from "../../core/decision/finding.ts";
import { at, stringAt } from "../../core/json.ts";
import { workloadTable } from "../../core/kubernetes/workloads.ts";
import { ConnectionError } from "../client/client.ts";
import { EVENT_LIMITS } from "./event-correlator.ts";
import { EventRecorder } from "./event-recorder.ts";
import { createFindLive } from "./live-objects.ts";

const POLICY = { kind: "ClusterPodSchedulingPolicy", name: "etcd-pool", uid: "u-1", generation: 2 };

function event(changes: Partial<EventToWrite> = {}): EventToWrite {
  return {
    type: "Warning",
    reason: "Skipped",
    regarding: { kind: "Pod", namespace: "shop", name: "web" },
    message: "was left out",
    policy: POLICY,
    ...changes,
  };
}

function eventsOn(server: TestApiServer) {
  const time = { now: 1_700_000_000_000, clock: 5_000 };
  const events = new EventRecorder({
    client: server.client,
    instance: "usher-7d9f-x2",
    now: () => time.now,
    clock: () => time.clock,
    apiVersionOf: (kind) => (kind === "Pod" ? "v1" : undefined),
    findLive: createFindLive(server.client, workloadTable()),
  });
  const pass = (ms: number) => {
    time.now += ms;
    time.clock += ms;
  };
  return { events, time, pass };
}

function about(name: string, changes: Partial<EventToWrite> = {}): EventToWrite {
  return event({ regarding: { kind: "Pod", namespace: "shop", name }, ...changes });
}

test("an event has controller, object, note and the policy as related object", async () => {
  const server = new TestApiServer();
  const { events } = eventsOn(server);
  events.add([event()]);
  await events.flush();
  expect(server.bodies).toMatchObject([
    {
      apiVersion: "events.k8s.io/v1",
      metadata: { namespace: "shop", name: expect.stringMatching(/^web\.[0-9a-z]+$/) },
      eventTime: "2023-11-14T22:13:20.000000Z",
      reportingController: "usher.dev/usher",
      reportingInstance: "usher-7d9f-x2",
      action: "Admission",
      type: "Warning",
      reason: "Skipped",
      note: "was left out",
      regarding: { apiVersion: "v1", kind: "Pod", namespace: "shop", name: "web" },
      related: { kind: "ClusterPodSchedulingPolicy", name: "etcd-pool", uid: "u-1" },
    },
  ]);
  expect(at(server.bodies[0], "series")).toBeUndefined();
});

test("an event of a review records rule and generation, and another generation is another event", async () => {
  const server = new TestApiServer();
  const { events } = eventsOn(server);
  const by = (generation: number) => event({ rule: "nodeSelector", policy: { ...POLICY, generation } });
  events.add([by(2), by(2), by(3)]);
  await events.flush();
  expect(server.bodies.map((body) => at(body, "metadata", "annotations"))).toEqual([
    { "usher.dev/policy-generation": "2", "usher.dev/rule": "nodeSelector" },
    { "usher.dev/policy-generation": "3", "usher.dev/rule": "nodeSelector" },
  ]);
  expect(server.bodies.map((body) => at(body, "series", "count"))).toEqual([2, undefined]);
});

test("an event refers to its object by apiVersion and uid, as kubectl describe looks for it", async () => {
  const server = new TestApiServer();
  const { events } = eventsOn(server);
  const regarding = { apiVersion: "apps/v1", kind: "ReplicaSet", namespace: "shop", name: "web", uid: "u-9" };
  events.add([event({ regarding })]);
  events.add([event({ regarding: { ...regarding, uid: "u-10" } })]);
  await events.flush();
  expect(server.bodies).toMatchObject([{ regarding }, { regarding: { uid: "u-10" } }]);
});

test("an event about the policy itself has its uid, and one about a cluster-scoped object is in default", async () => {
  const server = new TestApiServer();
  const { events } = eventsOn(server);
  const { kind, name } = POLICY;
  events.add([event({ regarding: { kind, name }, message: "x".repeat(5_000) })]);
  await events.flush();
  const [body] = server.bodies;
  expect(stringAt(body, "metadata", "namespace")).toBe("default");
  expect(at(body, "regarding")).toEqual({ kind, name, uid: "u-1" });
  expect(at(body, "related")).toBeUndefined();
  expect(Buffer.byteLength(stringAt(body, "note") ?? "")).toBe(1_024);
});

test("a repeated event updates the count of its Event; an expired Event is created again", async () => {
  const server = new TestApiServer();
  const { events, pass } = eventsOn(server);
  events.add([event()]);
  await events.flush();
  pass(60_000);
  events.add([event(), event()]);
  await events.flush();
  expect(server.asked[1]).toBe(server.asked[0]?.replace("POST", "PATCH").concat("/", nameIn(server, 0)));
  expect(server.bodies[1]).toEqual({ series: { count: 3, lastObservedTime: "2023-11-14T22:14:20.000000Z" } });
  server.fault = (method) => (method === "PATCH" ? refuse(404, "NotFound", nameIn(server, 0)) : undefined);
  pass(60_000);
  events.add([event()]);
  await events.flush();
  await events.flush();
  expect(server.bodies.at(-1)).toMatchObject({ kind: "Event", series: { count: 4 } });
});

test("a rejected event is dropped and counted; after a broken connection it waits", async () => {
  const server = new TestApiServer();
  const { events, pass } = eventsOn(server);
  events.add([event(), event(), event({ reason: "Other" })]);
  server.fault = () => new ConnectionError("reset");
  await events.flush();
  expect(events.dropped).toBe(0);
  server.fault = () => refuse(429, "TooManyRequests");
  await events.flush();
  expect(events.dropped).toBe(0);
  pass(1_000);
  server.fault = (_, __, { body }) =>
    stringAt(body, "reason") === "Skipped" ? refuse(404, "NotFound", "shop") : undefined;
  await events.flush();
  expect(events.dropped).toBe(2);
  expect(server.objects.size).toBe(1);
});

test("writes at most twenty at once, and writes due events when stopped", async () => {
  const server = new TestApiServer();
  const { events } = eventsOn(server);
  events.add(Array.from({ length: 50 }, (_, i) => about(`p${i}`)));
  expect(server.asked).toEqual([]);
  await events.flush();
  expect(server.asked).toHaveLength(20);
  await events.stop();
  expect(server.asked).toHaveLength(40);
});

test("stopping writes events added during a write, and nothing after it", async () => {
  const server = new TestApiServer();
  const { events } = eventsOn(server);
  const gate = Promise.withResolvers<undefined>();
  server.fault = () => gate.promise;
  events.add([about("first")]);
  const under = events.flush();
  events.add([about("second")]);
  const stopped = events.stop();
  gate.resolve(undefined);
  await Promise.all([under, stopped]);
  expect(server.bodies.map((body) => stringAt(body, "regarding", "name"))).toEqual(["first", "second"]);
  vi.useFakeTimers();
  try {
    events.add([about("third")]);
    await vi.advanceTimersByTimeAsync(60_000);
  } finally {
    vi.useRealTimers();
  }
  expect(server.bodies).toHaveLength(2);
});

test("events that always fail do not starve others, and are dropped after the last attempt", async () => {
  const server = new TestApiServer();
  const { events, pass } = eventsOn(server);
  server.fault = (_, __, { body }) =>
    stringAt(body, "regarding", "name") === "well" ? undefined : refuse(500, "InternalError");
  events.add([...Array.from({ length: 20 }, (_, i) => about(`ill${i}`)), about("well")]);
  for (let i = 0; i < 2; i++) await events.flush();
  expect(server.count("POST 201")).toBe(1);
  for (let i = 0; i < 1_000; i++) {
    pass(1_000);
    await events.flush();
  }
  expect(server.count("POST 500")).toBe(20 * EVENT_LIMITS.attempts);
  expect(events.dropped).toBe(20);
});

test.each(["a/b", "..", "", "%2e"])(
  "an event that can't be sent is dropped alone: namespace %j",
  async (namespace) => {
    const server = new TestApiServer();
    const { events } = eventsOn(server);
    events.add([event({ regarding: { kind: "Pod", namespace, name: "web" } }), about("well")]);
    await events.flush();
    expect(server.answered).toEqual(["POST 201"]);
    expect(events.dropped).toBe(1);
  },
);

test("an event without response delays the others for one round only", async () => {
  const server = new TestApiServer();
  const { events, pass } = eventsOn(server);
  server.fault = (_, __, { body }) => {
    if (stringAt(body, "regarding", "name") === "well") return undefined;
    pass(30_000);
    return new ConnectionError("no response");
  };
  events.add([about("ill"), about("well")]);
  await events.flush();
  expect(server.answered).toEqual([]);
  await events.flush();
  expect(server.answered).toEqual(["POST 201"]);
  expect(events.dropped).toBe(0);
});

test("a wall clock that is set back drops no events", async () => {
  const server = new TestApiServer();
  const { events, time, pass } = eventsOn(server);
  const { burst, refillMs, updateMs } = EVENT_LIMITS;
  events.add(Array.from({ length: burst }, (_, i) => event({ message: `message ${i}` })));
  for (let i = 0; i < 2; i++) await events.flush();
  time.now = Date.parse("2022-11-14T00:00:00Z");
  pass(refillMs);
  events.add([event({ message: "another" }), event({ message: "message 0" })]);
  pass(updateMs);
  await events.flush();
  expect(events.dropped).toBe(0);
  expect(server.bodies.slice(burst)).toMatchObject([
    { series: { count: 2, lastObservedTime: "2022-11-14T00:05:00.000000Z" } },
    { note: "another", eventTime: "2022-11-14T00:05:00.000000Z" },
  ]);
});

function nameIn(server: TestApiServer, i: number): string {
  return stringAt(server.bodies[i], "metadata", "name") ?? "";
}

describe("an event of an unverified caller", () => {
  const SHOP = "/api/v1/namespaces/shop";
  const REPLICA_SET = "/apis/apps/v1/namespaces/shop/replicasets/web";
  const owner = { apiVersion: "apps/v1", kind: "ReplicaSet", namespace: "shop", name: "web", uid: "u-9" };
  const { uid: _, ...plain } = owner;
  const namespace = { apiVersion: "v1", kind: "Namespace", namespace: "shop", name: "shop", uid: "u-shop" };
  const { kind, name } = POLICY;

  test.each<[string, EventToWrite["regarding"], readonly string[], object | undefined]>([
    ["about an owner that is stored names it", owner, [SHOP, REPLICA_SET], owner],
    ["about an owner without a uid names the stored one", plain, [SHOP, REPLICA_SET], owner],
    [
      "about an owner of another uid names the namespace",
      { ...owner, uid: "u-1" },
      [SHOP, REPLICA_SET],
      namespace,
    ],
    ["about an owner that is not stored names the namespace", owner, [SHOP], namespace],
    ["about a kind that is not known names the namespace", { ...owner, kind: "Secret" }, [SHOP], namespace],
    ["about an object without a name names the namespace", { ...owner, name: "" }, [SHOP], namespace],
    ["about a namespace that is stored names it", namespace, [SHOP], namespace],
    ["about a namespace that is not stored is not written", namespace, [], undefined],
    [
      "in a namespace that is not stored is not written",
      owner,
      [REPLICA_SET.replace("shop", "other")],
      undefined,
    ],
    ["about a name with a path in it is not written", { ...owner, namespace: "../x" }, [SHOP], undefined],
    [
      "about a cluster-scoped object that is not stored is not written",
      { kind: "Node", name: "n" },
      [],
      undefined,
    ],
    ["about a prototype's property is not written", { kind: "constructor", name: "n" }, [], undefined],
    ["about usher's own policy names it", { kind, name }, [], { kind, name, uid: "u-1" }],
  ])("%s", async (_, regarding, stored, expected) => {
    const server = new TestApiServer();
    const uids: Record<string, string> = { [SHOP]: "u-shop", [REPLICA_SET]: "u-9" };
    for (const path of stored) server.put(path, { metadata: { uid: uids[path] ?? "u-9" } });
    const { events } = eventsOn(server);
    events.add([event({ regarding, unverified: true })]);
    await events.flush();
    const written = server.bodies.filter((body) => at(body, "kind") === "Event");
    expect(written).toMatchObject(
      expected === undefined
        ? []
        : [{ regarding: expected, metadata: { annotations: { "usher.dev/caller": "unverified" } } }],
    );
    expect(events.dropped).toBe(expected === undefined ? 1 : 0);
  });

  test("waits while the stored state is unknown", async () => {
    const server = new TestApiServer();
    server.put(SHOP, { metadata: { uid: "u-shop" } });
    const { events, pass } = eventsOn(server);
    server.fault = () => refuse(503, "ServiceUnavailable");
    events.add([event({ regarding: namespace, unverified: true })]);
    await events.flush();
    expect([server.bodies.length, events.dropped]).toEqual([0, 0]);
    server.fault = () => undefined;
    pass(2_000);
    await events.flush();
    expect(server.bodies).toMatchObject([{ regarding: namespace }]);
  });
});
