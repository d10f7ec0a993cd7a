import { expect, test } from "vitest";
import type { EventToWrite } from "../core/effects.ts";
import { at, stringAt } from "../core/json.ts";
import { ConnectionError } from "./client.ts";
import { Events } from "./events.ts";
import { refuse, TestApiServer } from "./test-api-server.ts";

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
  const time = { now: 1_700_000_000_000 };
  const events = new Events({
    client: server.client,
    instance: "usher-7d9f-x2",
    now: () => time.now,
    apiVersionOf: (kind) => (kind === "Pod" ? "v1" : undefined),
  });
  return { events, time };
}

test("an event says who, what and about which object, and which policy was the reason", async () => {
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

test("one about the policy itself carries its uid, and a cluster-scoped one lives in default", async () => {
  const server = new TestApiServer();
  const { events } = eventsOn(server);
  const { kind, name } = POLICY;
  events.add([event({ regarding: { kind, name }, message: "x".repeat(5_000) })]);
  await events.flush();
  const [body] = server.bodies;
  expect(stringAt(body, "metadata", "namespace")).toBe("default");
  expect(at(body, "regarding")).toEqual({ kind, name, uid: "u-1" });
  expect(at(body, "related")).toBeUndefined();
  expect(stringAt(body, "note")).toHaveLength(1_024);
});

test("a repeated one is counted up on the event that there is; one that expired begins anew", async () => {
  const server = new TestApiServer();
  const { events, time } = eventsOn(server);
  events.add([event()]);
  await events.flush();
  time.now += 60_000;
  events.add([event(), event()]);
  await events.flush();
  expect(server.asked[1]).toBe(server.asked[0]?.replace("POST", "PATCH").concat("/", nameIn(server, 0)));
  expect(server.bodies[1]).toEqual({ series: { count: 3, lastObservedTime: "2023-11-14T22:14:20.000000Z" } });
  server.fault = (method) => (method === "PATCH" ? refuse(404, "NotFound", nameIn(server, 0)) : undefined);
  time.now += 60_000;
  events.add([event()]);
  await events.flush();
  await events.flush();
  expect(server.bodies.at(-1)).toMatchObject({ kind: "Event", series: { count: 4 } });
});

test("what is refused is dropped and counted; what could not be asked waits", async () => {
  const server = new TestApiServer();
  const { events } = eventsOn(server);
  events.add([event(), event(), event({ reason: "Other" })]);
  server.fault = () => new ConnectionError("reset");
  await events.flush();
  expect(events.dropped).toBe(0);
  server.fault = () => refuse(429, "TooManyRequests");
  await events.flush();
  expect(events.dropped).toBe(0);
  server.fault = (_, __, { body }) =>
    stringAt(body, "reason") === "Skipped" ? refuse(404, "NotFound", "shop") : undefined;
  await events.flush();
  expect(events.dropped).toBe(2);
  expect(server.objects.size).toBe(1);
});

test("at most twenty are written at once, and stopping writes what is due", async () => {
  const server = new TestApiServer();
  const { events } = eventsOn(server);
  events.add(
    Array.from({ length: 50 }, (_, i) =>
      event({ regarding: { kind: "Pod", namespace: "shop", name: `p${i}` } }),
    ),
  );
  expect(server.asked).toEqual([]);
  await events.flush();
  expect(server.asked).toHaveLength(20);
  await events.stop();
  expect(server.asked).toHaveLength(40);
});

function nameIn(server: TestApiServer, i: number): string {
  return stringAt(server.bodies[i], "metadata", "name") ?? "";
}
