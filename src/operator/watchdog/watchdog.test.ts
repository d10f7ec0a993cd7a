import { applyPatch } from "rfc6902";
import { describe, expect, test } from "vitest";
import { answerOf, refuse, TestApiServer } from "../../../test/support/cluster/api-server.ts";
import { ConnectionError } from "../../cluster/client/client.ts";
import type { EventToWrite } from "../../core/decision/finding.ts";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { SILENT } from "../../core/log.ts";
import { endStandby } from "../webhooks/standby.ts";
import { Watchdog, watchdogPage } from "./watchdog.ts";

const SLICE = "/apis/discovery.k8s.io/v1/namespaces/hall/endpointslices/usher-1";
const HOOKS = "/apis/admissionregistration.k8s.io/v1";
const MUTATING = `${HOOKS}/mutatingwebhookconfigurations/usher`;
const VALIDATING = `${HOOKS}/validatingwebhookconfigurations/usher`;
const OPENABLE = "usher.dev/openable";
const OPENED = "usher.dev/opened";
const RECORD = "usher.dev/unready";

const OPEN_AFTER_S = 300;
const POLL_S = 2;

class World {
  readonly server = new TestApiServer();
  readonly events: EventToWrite[] = [];
  /** Of the monotonic clock, in seconds. */
  time = 1_000;
  down = false;
  watchdog = this.start();

  constructor() {
    this.server.fault = (method, path, { body }) => {
      if (this.down) return new ConnectionError("refused");
      if (method !== "PATCH" || !Array.isArray(body)) return undefined;
      const [key = ""] = path.split("?");
      const stored = this.server.objects.get(key);
      if (stored === undefined) return refuse(404, "NotFound", "usher");
      const version = at(body.at(-1) ?? null, "value");
      if (version !== at(stored, "metadata", "resourceVersion")) return refuse(409, "Conflict", "usher");
      const patched = structuredClone(stored);
      expect(applyPatch(patched, body as never).filter((error) => error !== null)).toEqual([]);
      return answerOf(200, this.server.put(key, patched));
    };
    this.ready(true);
    this.server.put(
      MUTATING,
      configuration({ "a.usher.dev": "Fail", "b.usher.dev": "Ignore" }, ["a.usher.dev"]),
    );
    this.server.put(
      VALIDATING,
      configuration({ "c.usher.dev": "Fail", "kept.usher.dev": "Fail", "d.usher.dev": "Fail" }, [
        "c.usher.dev",
        "d.usher.dev",
      ]),
    );
  }

  start(): Watchdog {
    return new Watchdog({
      client: this.server.client,
      namespace: "hall",
      openAfterMs: OPEN_AFTER_S * 1_000,
      fallbackAfterMs: 15_000,
      log: { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} },
      publish: (events) => this.events.push(...events),
      clock: () => this.time * 1_000,
      now: () => Date.UTC(2026, 10, 17),
    });
  }

  ready(...replicas: (boolean | undefined)[]): void {
    this.server.put(SLICE, {
      metadata: { uid: "u" },
      endpoints: replicas.map((ready) => ({ conditions: ready === undefined ? {} : { ready } })),
    });
  }

  /** Runs the watchdog for this long. */
  async watch(seconds: number, watchdog = this.watchdog): Promise<void> {
    const until = this.time + seconds;
    while (this.time < until) {
      this.time = Math.min(until, this.time + POLL_S);
      await watchdog.step();
    }
  }

  /** The fail-closed entries of both. */
  closed(): string[] {
    return [MUTATING, VALIDATING].flatMap((path) =>
      listAt(this.server.objects.get(path), "webhooks").flatMap((entry) =>
        at(entry, "failurePolicy") === "Fail" ? [stringAt(entry, "name") ?? ""] : [],
      ),
    );
  }

  annotation(name: string, path = MUTATING): string | undefined {
    return stringAt(this.server.objects.get(path), "metadata", "annotations", name);
  }

  patches(): number {
    return this.server.answered.filter((one) => one.startsWith("PATCH")).length;
  }
}

function configuration(entries: Readonly<Record<string, string>>, openable: readonly string[]): JsonObject {
  return {
    metadata: { annotations: { [OPENABLE]: openable.join(), theirs: "stays" } },
    webhooks: Object.entries(entries).map(([name, failurePolicy]) => ({
      name,
      failurePolicy,
      rules: [{ a: 1 }],
    })),
  };
}

const ALL = ["a.usher.dev", "c.usher.dev", "kept.usher.dev", "d.usher.dev"];

describe("the watchdog", () => {
  test("changes nothing while a replica is ready, and none for less than the limit", async () => {
    const world = new World();
    await world.watch(600);
    expect(world.patches()).toBe(0);
    world.ready(false, undefined);
    await world.watch(600);
    expect(world.patches()).toBe(0);
    world.ready(false, false);
    await world.watch(OPEN_AFTER_S);
    expect(world.closed()).toEqual(ALL);
    expect(world.events).toEqual([]);
  });

  test("then opens only the openable entries, with an annotation and an event", async () => {
    const world = new World();
    world.server.put("/apis/apps/v1/namespaces/hall/deployments/usher", {
      metadata: { uid: "of-deployment" },
    });
    world.ready();
    await world.watch(OPEN_AFTER_S + POLL_S);
    expect(world.closed()).toEqual(["kept.usher.dev"]);
    for (const path of [MUTATING, VALIDATING]) {
      const note = JSON.parse(world.annotation(OPENED, path) ?? "null") as Json;
      expect(note).toEqual({
        time: "2026-11-17T00:00:00.000Z",
        reason: "no replica of usher was ready for 300 s",
      });
      expect(world.annotation("theirs", path)).toBe("stays");
      expect(at(world.server.objects.get(path), "webhooks", 0, "rules")).toEqual([{ a: 1 }]);
    }
    expect(world.events).toEqual([
      {
        type: "Warning",
        reason: "WebhooksOpened",
        message: expect.stringContaining("300 s: opened a.usher.dev."),
        regarding: {
          apiVersion: "apps/v1",
          kind: "Deployment",
          namespace: "hall",
          name: "usher",
          uid: "of-deployment",
        },
        policy: undefined,
      },
      expect.objectContaining({ message: expect.stringContaining("opened c.usher.dev, d.usher.dev.") }),
    ]);
    const writes = world.patches();
    await world.watch(600);
    expect(world.patches()).toBe(writes);
  });

  test("opens entries again that were closed while still none is ready, such as a restored configuration", async () => {
    const world = new World();
    world.ready();
    await world.watch(OPEN_AFTER_S + POLL_S);
    world.server.put(
      MUTATING,
      configuration({ "a.usher.dev": "Fail", "new.usher.dev": "Fail" }, ["new.usher.dev"]),
    );
    await world.watch(POLL_S);
    expect(world.closed()).toEqual(["a.usher.dev", "kept.usher.dev"]);
  });

  test("leaves a configuration without the mark of the replicas, and a missing one", async () => {
    const world = new World();
    world.server.put(MUTATING, { webhooks: [{ name: "a.usher.dev", failurePolicy: "Fail" }] });
    world.server.objects.delete(VALIDATING);
    world.ready();
    await world.watch(OPEN_AFTER_S * 2);
    expect(world.closed()).toEqual(["a.usher.dev"]);
    expect(world.patches()).toBe(0);
  });

  test("counts no time in which the API server did not answer", async () => {
    const world = new World();
    world.ready();
    await world.watch(200);
    world.down = true;
    await world.watch(1_000);
    world.down = false;
    await world.watch(90);
    expect(world.closed()).toEqual(ALL);
    await world.watch(20);
    expect(world.closed()).toEqual(["kept.usher.dev"]);
  });

  test("starts again if endpoints changed while it could not see them", async () => {
    const world = new World();
    world.ready();
    await world.watch(200);
    world.down = true;
    await world.watch(1_000);
    world.ready(false);
    world.down = false;
    await world.watch(OPEN_AFTER_S);
    expect(world.closed()).toEqual(ALL);
  });

  test.each(["a 403", "another list"])("does not count %s as an observation", async (what) => {
    const world = new World();
    const { fault } = world.server;
    world.server.fault = (method, path, options) =>
      path.includes("endpointslices")
        ? what === "a 403"
          ? refuse(403, "Forbidden")
          : answerOf(200, { items: "none" })
        : fault(method, path, options);
    await world.watch(OPEN_AFTER_S * 3);
    expect(world.closed()).toEqual(ALL);
    expect(world.patches()).toBe(0);
  });

  test("does not open a configuration that a replica has just repaired", async () => {
    const world = new World();
    world.ready();
    await world.watch(OPEN_AFTER_S);
    const { fault } = world.server;
    world.server.fault = (method, path, options) => {
      // Between the watchdog's read and its write.
      if (method === "PATCH")
        world.server.put(path.split("?")[0] ?? "", configuration({ "a.usher.dev": "Fail" }, ["a.usher.dev"]));
      return fault(method, path, options);
    };
    await world.watch(POLL_S);
    expect(world.server.answered.slice(-4)).toContain("PATCH 409");
    expect(world.events).toEqual([]);
    world.server.fault = fault;
    world.ready(true);
    await world.watch(600);
    expect(world.annotation(OPENED)).toBeUndefined();
  });

  test("opens despite repeated restarts, and never early", async () => {
    const world = new World();
    world.ready(false);
    let observed = 0;
    // A crash loop: it runs for a minute, and is down for four.
    for (; world.closed().length === ALL.length && observed < 1_200; observed += 60) {
      await world.watch(60, world.start());
      world.time += 240;
    }
    // The time since its last record is lost with each crash: up to a tenth of the limit.
    expect(observed).toBeGreaterThanOrEqual(OPEN_AFTER_S);
    expect(observed).toBeLessThanOrEqual(OPEN_AFTER_S * 2.2);
    expect(world.closed()).toEqual(["kept.usher.dev"]);
  });

  test("ignores a record from before a replica was ready, and then removes it", async () => {
    const world = new World();
    world.ready();
    await world.watch(250);
    expect(JSON.parse(world.annotation(RECORD) ?? "null")).toMatchObject({ observedMs: expect.any(Number) });
    world.ready(true);
    world.time += 100;
    world.ready();
    const next = world.start();
    await world.watch(100, next);
    expect(world.closed()).toEqual(ALL);
    world.ready(true);
    await world.watch(POLL_S, next);
    for (const path of [MUTATING, VALIDATING]) expect(world.annotation(RECORD, path)).toBeUndefined();
  });

  test.each(["", "{", "null", "[]", '{"observedMs":-1,"version":"x"}', '{"observedMs":"9e9"}'])(
    "ignores the record %j",
    async (record) => {
      const world = new World();
      const live = world.server.objects.get(MUTATING) ?? {};
      world.server.put(MUTATING, {
        ...live,
        metadata: { annotations: { [OPENABLE]: "a.usher.dev", [RECORD]: record } },
      });
      world.ready();
      await world.watch(OPEN_AFTER_S, world.start());
      expect(world.closed()).toEqual(ALL);
    },
  );

  test("two watchdogs, as in a rolling update, open once", async () => {
    const world = new World();
    world.ready();
    const other = world.start();
    for (let i = 0; i < OPEN_AFTER_S / POLL_S + 5; i++) {
      world.time += POLL_S;
      await Promise.all([world.watchdog.step(), other.step()]);
    }
    expect(world.closed()).toEqual(["kept.usher.dev"]);
    expect(world.events).toHaveLength(2);
  });

  test("reports for how long none is ready, and what is open until a replica has closed it", async () => {
    const world = new World();
    const metric = (name: string, watchdog = world.watchdog) =>
      new RegExp(`^usher_watchdog_${name} (.*)$`, "m").exec(
        watchdogPage("/metrics", watchdog.state).body,
      )?.[1];
    expect(metric("look_age_seconds")).toBe("+Inf");
    await world.watch(POLL_S);
    expect([metric("unready_seconds"), metric("opened"), metric("look_age_seconds")]).toEqual([
      "0",
      "0",
      "0",
    ]);
    world.ready();
    await world.watch(100 + POLL_S);
    expect([metric("unready_seconds"), metric("opened")]).toEqual(["100", "0"]);
    await world.watch(OPEN_AFTER_S);
    expect([metric("unready_seconds"), metric("opened")]).toEqual(["400", "2"]);
    const next = world.start();
    await world.watch(POLL_S, next);
    expect(metric("opened", next)).toBe("2");
    world.ready(true);
    await world.watch(POLL_S);
    expect([metric("unready_seconds"), metric("opened")]).toEqual(["0", "2"]);
    world.server.put(MUTATING, configuration({ "a.usher.dev": "Fail" }, []));
    await world.watch(POLL_S);
    expect(metric("opened")).toBe("1");
  });

  test("is ready while it sees the replicas, and alive while it tries to", async () => {
    const world = new World();
    const page = (path: string) => watchdogPage(path, world.watchdog.state);
    expect(page("/readyz")).toEqual({
      status: 503,
      body: "it has not seen the replicas yet; its log says why\n",
    });
    await world.watch(POLL_S);
    expect(page("/readyz")).toEqual({ status: 200, body: "ok\n" });
    world.down = true;
    await world.watch(300);
    expect(page("/readyz")).toMatchObject({ status: 503, body: expect.stringContaining("for 300 s") });
    expect(page("/livez").status).toBe(200);
    world.time += 300;
    expect(page("/livez")).toMatchObject({ status: 503, body: expect.stringContaining("nothing for 300 s") });
    expect([page("/").status, page("/other").status]).toEqual([200, 404]);
  });
});

describe("compiled policies that stand in for webhooks", () => {
  const LABEL = "usher.dev/standby";
  const standby = (world: World) => stringAt(world.server.objects.get(MUTATING), "metadata", "labels", LABEL);
  const set = (world: World, value: string | undefined) => {
    const live = world.server.objects.get(MUTATING) ?? {};
    const metadata = at(live, "metadata") as JsonObject;
    const labels = { other: "stays", ...(value === undefined ? {} : { [LABEL]: value }) };
    world.server.put(MUTATING, { ...live, metadata: { ...metadata, labels } });
  };
  const prepared = (): World => {
    const world = new World();
    set(world, "ready");
    return world;
  };

  test("begin after 15 s without a ready replica, and end when one is ready; each with one write and one event", async () => {
    const world = prepared();
    await world.watch(60);
    world.ready(false);
    await world.watch(16);
    expect([standby(world), world.patches()]).toEqual(["ready", 0]);
    await world.watch(2);
    expect([standby(world), world.patches()]).toEqual(["active", 1]);
    await world.watch(10);
    expect(world.patches()).toBe(1);
    world.ready(true);
    await world.watch(2);
    expect(standby(world)).toBe("ready");
    await world.watch(60);
    expect(world.patches()).toBe(2);
    expect(world.events.map(({ type, reason }) => `${type} ${reason}`)).toEqual([
      "Warning StandbyBegan",
      "Normal StandbyEnded",
    ]);
    expect(stringAt(world.server.objects.get(MUTATING), "metadata", "labels", "other")).toBe("stays");
    expect(world.closed()).toEqual(ALL);
  });

  test("do not begin where no module has them", async () => {
    const world = prepared();
    set(world, undefined);
    world.ready();
    await world.watch(100);
    expect([standby(world), world.events]).toEqual([undefined, []]);
  });

  test("a starting replica that ended the standby has a minute to become ready; then it begins again", async () => {
    const world = prepared();
    world.ready();
    await world.watch(20);
    expect(standby(world)).toBe("active");
    set(world, "ready");
    await world.watch(60);
    expect(standby(world)).toBe("ready");
    await world.watch(6);
    expect(standby(world)).toBe("active");
  });

  test("a standby that another watchdog began ends when a replica is ready", async () => {
    const world = prepared();
    set(world, "active");
    await world.watch(2, world.start());
    expect(standby(world)).toBe("ready");
  });

  test("a replica ends the standby before it serves, also if the watchdog writes at the same time", async () => {
    const world = prepared();
    set(world, "active");
    const { client } = world.server;
    let raced = false;
    const racing: typeof client = {
      ...client,
      request: async (method, path, options) => {
        const answer = await client.request(method, path, options);
        if (method === "GET" && !raced) {
          raced = true;
          set(world, "active");
        }
        return answer;
      },
    };
    await endStandby(racing, SILENT, new AbortController().signal);
    expect([raced, standby(world)]).toEqual([true, "ready"]);
  });
});
