import { setTimeout as later, setImmediate as step } from "node:timers/promises";
import { afterEach, expect, test, vi } from "vitest";
import { refuse, TestApiServer } from "../../../test/support/cluster/api-server.ts";
import { at, isObject, stringAt } from "../../core/json.ts";
import { type ApiResponse, ConnectionError } from "../client/client.ts";
import { microTime } from "../client/micro-time.ts";
import { LeaderElection } from "./leader-election.ts";
import { LEASE_TIMES, type LeaseTimes } from "./lease-state.ts";

const PATH = "/apis/coordination.k8s.io/v1/namespaces/usher-system/leases/usher";

/** Short, so that a test does not wait; the ratios are those of the real ones. */
const TIMES: LeaseTimes = { durationMs: 1_500, renewMs: 50, renewDeadlineMs: 300, retryMs: 20 };

function candidate(
  { client }: Pick<TestApiServer, "client">,
  identity: string,
  events: string[] = [],
  times = TIMES,
) {
  const lease = new LeaderElection({
    client,
    namespace: "usher-system",
    name: "usher",
    identity,
    times,
    onStartedLeading: () => void events.push(`${identity} leads`),
    onStoppedLeading: async () => {
      await step();
      events.push(`${identity} ends`);
    },
    onError: (why) => void events.push(why),
  });
  lease.start();
  return lease;
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await step();
}

afterEach(() => vi.useRealTimers());

/** From here on time advances only by the test; responses of the test server still arrive by themselves. */
function stopTime(): (ms: number) => Promise<void> {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  return async (ms) => {
    for (let passed = 0; passed < ms; passed += 100) {
      vi.advanceTimersByTime(100);
      await later(3);
    }
  };
}

/** No response until the request times out. */
function hang(timeoutMs = 0): Promise<Error> {
  return new Promise((resolve) => setTimeout(() => resolve(new ConnectionError("too late")), timeoutMs));
}

const holderIn = (server: TestApiServer) => stringAt(server.objects.get(PATH), "spec", "holderIdentity");

test("the first candidate leads, and renews with the version of its last write", async () => {
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

test("stopping awaits onStoppedLeading, releases, and the next candidate leads without waiting for the expiry", async () => {
  const server = new TestApiServer();
  const events: string[] = [];
  // A long lease: only its release can end it.
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

test("a holder that can't renew stops leading at the renew deadline, even without any response", async () => {
  const server = new TestApiServer();
  const events: string[] = [];
  const lease = candidate(server, "a", events);
  await until(() => lease.leading);
  server.fault = () => new Promise(() => undefined);
  await until(() => events.includes("a ends"));
  expect(lease.leading).toBe(false);
  server.fault = () => undefined;
});

test("a lease that another candidate acquired is not renewed", async () => {
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

test("a leader whose renewal conflicts stops leading at once, not at its next attempt", async () => {
  const server = new TestApiServer();
  const events: string[] = [];
  const never = 3_600_000;
  const lease = candidate(server, "a", events, {
    durationMs: 2 * never,
    renewMs: 50,
    renewDeadlineMs: never,
    retryMs: never,
  });
  await until(() => lease.leading);
  server.put(PATH, { spec: { holderIdentity: "thief", leaseDurationSeconds: 3_600, leaseTransitions: 9 } });
  await until(() => events.includes("a ends"));
  expect(server.count("PUT 409")).toBe(1);
  await lease.stop();
});

test("a leader keeps leading while others edit its lease before each renewal", async () => {
  const server = new TestApiServer();
  const events: string[] = [];
  const lease = candidate(server, "a", events, { ...TIMES, renewDeadlineMs: 1_000, retryMs: 200 });
  await until(() => lease.leading);
  let edits = 0;
  // Another client writes the lease between the read and the renewal of a leader that waits for its next attempt.
  const editing = setInterval(() => {
    const live = server.objects.get(PATH);
    if (live !== undefined) server.put(PATH, { ...live, metadata: { labels: { edit: `${++edits}` } } });
  }, 40);
  try {
    await later(1_600);
  } finally {
    clearInterval(editing);
  }
  expect(server.count("PUT 409")).toBeGreaterThan(5);
  expect(events).toEqual(["a leads"]);
  await lease.stop();
});

test("a lease that can't be written although it is held is reported, and written again at the next attempt only", async () => {
  const server = new TestApiServer();
  const events: string[] = [];
  const lease = candidate(server, "a", events, { ...TIMES, renewMs: 20, renewDeadlineMs: 400, retryMs: 100 });
  await until(() => lease.leading);
  server.fault = (method) => (method === "PUT" ? refuse(409, "Conflict", "usher") : undefined);
  const began = performance.now();
  await until(() => events.includes("a ends"));
  // Three in a row, a tenth of a second apart.
  expect(server.count("PUT 409")).toBeLessThanOrEqual(3 * (3 + (performance.now() - began) / 75));
  expect(events).toContain("lease usher: the API server answered 409: refused: Conflict");
  await lease.stop();
});

test("a deleted lease is created again by its leader, and no other candidate leads meanwhile", async () => {
  const server = new TestApiServer();
  const events: string[] = [];
  // The leader renews late, so that the other candidate finds the lease gone first.
  const leader = candidate(server, "a", events, {
    ...TIMES,
    durationMs: 60_000,
    renewMs: 200,
    renewDeadlineMs: 40_000,
  });
  await until(() => leader.leading);
  const other = candidate(server, "b", events, { ...TIMES, durationMs: 60_000 });
  await until(() => other.holder === "a");
  server.objects.delete(PATH);
  const missing = server.count("GET 404");
  await until(() => server.count("GET 404") > missing);
  await until(() => holderIn(server) !== undefined);
  expect([holderIn(server), leader.leading, other.leading]).toEqual(["a", true, false]);
  // Another candidate, which had not read the Lease, may have led meanwhile.
  await until(() => events.length === 3);
  expect(events).toEqual(["a leads", "a ends", "a leads"]);
  await Promise.all([leader.stop(), other.stop()]);
});

test("errors are reported, and retried", async () => {
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
    "lease usher: no response: reset",
    "lease usher: the API server answered 403: refused: Forbidden",
    "lease usher: no response: cut",
    "a leads",
  ]);
  await lease.stop();
});

test("a creation without its namespace is reported, and not repeated at once", async () => {
  const server = new TestApiServer();
  const events: string[] = [];
  // The namespace has the name of the lease.
  server.fault = (method) => (method === "POST" ? refuse(404, "NotFound", "usher") : undefined);
  const lease = candidate(server, "a", events, { ...TIMES, retryMs: 60_000 });
  await until(() => events.length > 0);
  expect(server.answered).toEqual(["GET 404", "POST 404"]);
  expect(events).toEqual(["lease usher: the API server answered 404: refused: NotFound"]);
  await lease.stop();
});

test("a candidate with failing reads acquires the lease at its expiry, not later", async () => {
  const pass = stopTime();
  const server = new TestApiServer();
  server.put(PATH, { spec: { holderIdentity: "dead", leaseDurationSeconds: 15, leaseTransitions: 0 } });
  let looks = 0;
  server.fault = (method) => {
    if (method === "GET") looks += 1;
    return method === "GET" && looks % 5 === 0 ? new ConnectionError("reset") : undefined;
  };
  const lease = candidate(server, "b", [], LEASE_TIMES);
  await pass(LEASE_TIMES.durationMs + 2 * LEASE_TIMES.retryMs);
  expect(looks).toBeGreaterThanOrEqual(5);
  expect(lease.leading).toBe(true);
  vi.useRealTimers();
  await lease.stop();
});

test.each([
  ["lost", false],
  ["acquired nevertheless", true],
])("one renewal that hangs and is %s does not end leading", async (_, acquired) => {
  const pass = stopTime();
  const server = new TestApiServer();
  const events: string[] = [];
  const lease = candidate(server, "a", events, LEASE_TIMES);
  await until(() => lease.leading);
  let hung = 0;
  server.fault = (method, _path, { body, timeoutMs }) => {
    if (method !== "PUT" || hung > 0) return undefined;
    hung += 1;
    if (acquired && isObject(body)) server.put(PATH, body);
    return hang(timeoutMs);
  };
  await pass(3 * LEASE_TIMES.renewDeadlineMs);
  expect(hung).toBe(1);
  expect(lease.leading).toBe(true);
  expect(events).toEqual(["a leads", "lease usher: no response: too late"]);
  expect(at(server.objects.get(PATH), "spec", "leaseTransitions")).toBe(0);
  vi.useRealTimers();
  await lease.stop();
});

test("closes idle connections before the retry after a renewal without response", async () => {
  const server = new TestApiServer();
  const asked: string[] = [];
  const client = { ...server.client, closeIdleConnections: () => void asked.push("let go") };
  server.fault = (method) => {
    asked.push(method);
    return method === "PUT" && !asked.includes("let go") ? new ConnectionError("too late") : undefined;
  };
  const lease = candidate({ client }, "a");
  await until(() => asked.filter((one) => one === "PUT").length === 2);
  expect(asked).toEqual(["GET", "POST", "PUT", "let go", "GET", "PUT"]);
  await lease.stop();
});

test("a late renewal conflicts when another candidate leads", async () => {
  const pass = stopTime();
  const server = new TestApiServer();
  const events: string[] = [];
  const lease = candidate(server, "a", events, LEASE_TIMES);
  await until(() => lease.leading);
  const late: (() => Promise<ApiResponse>)[] = [];
  server.fault = (method, path, options) => {
    if (method === "PUT") late.push(() => server.client.request(method, path, options));
    return hang(options.timeoutMs);
  };
  await pass(LEASE_TIMES.durationMs);
  expect(events.filter((one) => one.startsWith("a "))).toEqual(["a leads", "a ends"]);
  server.put(PATH, { spec: { holderIdentity: "b", leaseDurationSeconds: 3_600, leaseTransitions: 1 } });
  server.fault = () => undefined;
  expect(late.length).toBeGreaterThan(0);
  for (const arrive of late) expect((await arrive()).status).toBe(409);
  await pass(LEASE_TIMES.durationMs);
  expect([holderIn(server), lease.leading]).toEqual(["b", false]);
  vi.useRealTimers();
  await lease.stop();
});

test("a holder that is stopped after a renewal with unknown result still releases", async () => {
  const server = new TestApiServer();
  const events: string[] = [];
  const lease = candidate(server, "a", events, {
    ...TIMES,
    durationMs: 60_000,
    renewDeadlineMs: 40_000,
    retryMs: 10_000,
  });
  await until(() => lease.leading);
  server.fault = (method) => (method === "PUT" ? new ConnectionError("cut") : undefined);
  await until(() => events.includes("lease usher: no response: cut"));
  server.fault = () => undefined;
  await lease.stop();
  expect(holderIn(server)).toBe("");
});

test("times have six fractional digits, as MicroTime requires", () => {
  expect(microTime(1_700_000_000_123)).toBe("2023-11-14T22:13:20.123000Z");
});
