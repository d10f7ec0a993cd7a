import { setImmediate as step } from "node:timers/promises";
import { expect, test } from "vitest";
import { at, stringAt } from "../core/json.ts";
import { ConnectionError } from "./client.ts";
import { Lease } from "./lease.ts";
import type { LeaseTimes } from "./lease-state.ts";
import { microTime } from "./micro-time.ts";
import { refuse, TestApiServer } from "./test-api-server.ts";

const PATH = "/apis/coordination.k8s.io/v1/namespaces/usher-system/leases/usher";

/** Short, so that a test does not wait; the relations are those of the real ones. */
const TIMES: LeaseTimes = { durationMs: 1_500, renewMs: 50, actMs: 300, retryMs: 20 };

function candidate(server: TestApiServer, identity: string, events: string[] = [], times = TIMES) {
  const lease = new Lease({
    client: server.client,
    namespace: "usher-system",
    name: "usher",
    identity,
    times,
    gained: () => void events.push(`${identity} leads`),
    lost: async () => {
      await step();
      events.push(`${identity} ends`);
    },
    trouble: (why) => void events.push(why),
  });
  lease.start();
  return lease;
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await step();
}

const holderIn = (server: TestApiServer) => stringAt(server.objects.get(PATH), "spec", "holderIdentity");

test("the first one leads, and renews with the version of its last write", async () => {
  const server = new TestApiServer();
  const events: string[] = [];
  const lease = candidate(server, "a", events);
  await until(() => server.count("PUT 200") >= 2);
  expect(lease.leading).toBe(true);
  expect(lease.holder).toBe("a");
  expect(server.answered.slice(0, 3)).toEqual(["GET 404", "POST 201", "PUT 200"]);
  const spec = at(server.objects.get(PATH), "spec");
  expect(spec).toMatchObject({ holderIdentity: "a", leaseDurationSeconds: 2, leaseTransitions: 0 });
  expect(stringAt(spec, "renewTime")).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  await lease.stop();
  expect(events).toEqual(["a leads", "a ends"]);
});

test("stopping ends the work first and then releases, and the next one leads without waiting for the end", async () => {
  const server = new TestApiServer();
  const events: string[] = [];
  // A lease that would last: only its release can make room.
  const times = { ...TIMES, durationMs: 3_600_000 };
  const a = candidate(server, "a", events, times);
  await until(() => a.leading);
  const b = candidate(server, "b", events, times);
  await until(() => b.holder === "a");
  let endedFirst = false;
  server.fault = (method) => {
    if (method === "PUT" && holderIn(server) === "a") endedFirst = events.includes("a ends");
    return undefined;
  };
  await a.stop();
  expect(endedFirst).toBe(true);
  await until(() => b.leading);
  expect(a.leading).toBe(false);
  expect(at(server.objects.get(PATH), "spec", "leaseTransitions")).toBe(1);
  await b.stop();
  expect(events).toEqual(["a leads", "a ends", "b leads", "b ends"]);
  expect(holderIn(server)).toBe("");
});

test("a holder that can't renew stops acting by itself, though the API server never answers", async () => {
  const server = new TestApiServer();
  const events: string[] = [];
  const lease = candidate(server, "a", events);
  await until(() => lease.leading);
  server.fault = () => new Promise(() => undefined);
  await until(() => events.includes("a ends"));
  expect(lease.leading).toBe(false);
  server.fault = () => undefined;
});

test("a lease that another one took is not renewed", async () => {
  const server = new TestApiServer();
  const events: string[] = [];
  const lease = candidate(server, "a", events);
  await until(() => lease.leading);
  server.put(PATH, { spec: { holderIdentity: "thief", leaseDurationSeconds: 3_600, leaseTransitions: 9 } });
  await until(() => events.includes("a ends"));
  expect(holderIn(server)).toBe("thief");
  await lease.stop();
  expect(holderIn(server)).toBe("thief");
});

test("trouble is told, and passes", async () => {
  const server = new TestApiServer();
  const events: string[] = [];
  const faults = [
    new ConnectionError("reset"),
    refuse(403, "Forbidden"),
    undefined,
    new ConnectionError("cut"),
  ];
  server.fault = () => faults.shift();
  const lease = candidate(server, "a", events);
  await until(() => lease.leading);
  expect(server.asked.map((one) => one.split(" ")[0])).toEqual(["GET", "GET", "GET", "POST", "GET", "POST"]);
  expect(events).toEqual([
    "lease usher: no answer: reset",
    "lease usher: the API server answered 403: refused: Forbidden",
    "lease usher: no answer: cut",
    "a leads",
  ]);
  await lease.stop();
});

test("a holder that is stopped after a renewal whose end it did not see still releases", async () => {
  const server = new TestApiServer();
  const events: string[] = [];
  const lease = candidate(server, "a", events, {
    ...TIMES,
    durationMs: 60_000,
    actMs: 40_000,
    retryMs: 10_000,
  });
  await until(() => lease.leading);
  server.fault = (method) => (method === "PUT" ? new ConnectionError("cut") : undefined);
  await until(() => events.includes("lease usher: no answer: cut"));
  server.fault = () => undefined;
  await lease.stop();
  expect(holderIn(server)).toBe("");
});

test("a moment has six digits after the point, as the API server wants it", () => {
  expect(microTime(1_700_000_000_123)).toBe("2023-11-14T22:13:20.123000Z");
});
