import { describe, expect, test, vi } from "vitest";
import { answerOf, TestApiServer } from "../../../test/support/cluster/api-server.ts";
import type { Client } from "../../cluster/client/client.ts";
import type { JsonObject } from "../../core/json.ts";
import type { Hook } from "../../core/module/hook.ts";
import { DeduplicatedLog } from "../deduplicated-log.ts";
import { HookAnnouncement, unsupportedHooks } from "./hook-announcement.ts";
import { callsMayHaveFailed, type ServiceEndpoints } from "./service-endpoints.ts";
import { SupportedHooks } from "./supported-hooks.ts";

const MAPS = "/api/v1/namespaces/hall/configmaps";
const SLICE = "/apis/discovery.k8s.io/v1/namespaces/hall/endpointslices/usher-1";

function hook(name: string, more: Partial<Hook> = {}): Hook {
  return {
    name,
    module: "m",
    phase: "validate",
    rules: [],
    failure: "closed",
    tooLarge: "deny",
    timeoutSeconds: 5,
    sideEffects: "None",
    ...more,
  };
}

const log = { debug: () => {}, info: () => {}, warn: () => {}, error: () => {} };

function announcement(server: TestApiServer, replica: string, hooks: readonly Hook[]): HookAnnouncement {
  return new HookAnnouncement({
    client: server.client,
    namespace: "hall",
    replica,
    owner: { kind: "Pod", name: replica },
    hooks: () => hooks,
    log,
  });
}

function supportedHooks(client: Client): SupportedHooks {
  const deduplicated = new DeduplicatedLog(log, () => 0);
  return new SupportedHooks({ client, namespace: "hall", service: "usher", replica: "leader", deduplicated });
}

type State = "ready" | "starting" | "ending";

function endpoint(pod: string | undefined, state: State): JsonObject {
  return {
    conditions: { ready: state === "ready", serving: state !== "starting" },
    ...(pod === undefined ? {} : { targetRef: { kind: "Pod", name: pod } }),
  };
}

const OLD = hook("old");
const NEW = hook("new", { announced: true });

describe("a hook is answered", () => {
  test.each<[string, Readonly<Record<string, [State, readonly Hook[] | "silent"]>>, string[]]>([
    ["by the leader itself, whatever it announced", { leader: ["ready", "silent"] }, ["old", "new"]],
    ["by a replica that announces it", { other: ["ready", [OLD, NEW]] }, ["old", "new"]],
    ["not by one that announces others", { other: ["ready", [OLD]] }, ["old"]],
    ["not by one that has disabled its module", { other: ["ready", [NEW]] }, ["new"]],
    ["by a silent one if it is not new", { other: ["ready", "silent"] }, ["old"]],
    ["not by a silent one that is terminating and still called", { other: ["ending", "silent"] }, ["old"]],
    ["not by one that starts and announced otherwise", { other: ["starting", [OLD]] }, ["old"]],
    ["by one that starts and has announced nothing yet", { other: ["starting", "silent"] }, ["old", "new"]],
    ["only if all answer it", { one: ["ready", [OLD, NEW]], two: ["ready", [OLD]] }, ["old"]],
  ])("%s", async (_, replicas, expected) => {
    const server = new TestApiServer();
    for (const [pod, [, hooks]] of Object.entries(replicas))
      if (hooks !== "silent") await announcement(server, pod, hooks).publish();
    server.put(SLICE, {
      endpoints: [
        ...Object.entries(replicas).map(([pod, [state]]) => endpoint(pod, state)),
        endpoint(undefined, "ready"),
      ],
    });
    const { client } = server;
    const supported = supportedHooks(client);
    await supported.refresh();
    const names = [OLD, NEW].filter((one) => supported.has(one)).map(({ name }) => name);
    expect(names).toEqual(expected);
  });

  test.each(["", "{", "null", '{"a":1}'])(
    "by a replica that announces %j as by a silent one",
    async (hooks) => {
      const server = new TestApiServer();
      server.put(`${MAPS}/usher-hooks-other`, { data: { hooks } });
      server.put(SLICE, { endpoints: [endpoint("other", "ready")] });
      const { client } = server;
      const supported = supportedHooks(client);
      await supported.refresh();
      expect([OLD, NEW].map((one) => supported.has(one))).toEqual([true, false]);
    },
  );
});

test("an announcement lists the hooks of a replica, is written once, and is deleted with its pod", async () => {
  const server = new TestApiServer();
  const one = announcement(server, "one", [
    hook("b", { askedAs: "a" }),
    hook("a"),
    hook("c", { phase: "mutate" }),
  ]);
  await one.publish();
  await one.publish();
  expect(server.objects.get(`${MAPS}/usher-hooks-one`)).toMatchObject({
    metadata: { labels: { "usher.dev/hooks": "true" }, ownerReferences: [{ kind: "Pod", name: "one" }] },
    data: { hooks: '["mutate/c","validate/a"]' },
  });
  expect(server.answered).toEqual(["PATCH 200"]);
  await one.stop();
  expect(server.objects.size).toBe(0);
});

test("an announcement that could not be written is written again", async () => {
  const server = new TestApiServer();
  const usual = server.fault;
  const one = announcement(server, "one", [OLD]);
  vi.useFakeTimers();
  try {
    server.fault = async () => answerOf(500, {});
    await one.publish();
    expect(server.objects.size).toBe(0);
    server.fault = usual;
    await vi.advanceTimersByTimeAsync(10_000);
  } finally {
    vi.useRealTimers();
  }
  await vi.waitFor(() => expect(server.objects.size).toBe(1));
});

test("a starting replica sees which registered hooks it does not know, with any token and entry", () => {
  const entry = (path: string) => ({ clientConfig: { service: { path } } });
  const registered = [
    { webhooks: [entry(`/${"a1".repeat(20)}/mutate/placement/steering`), entry("/mutate/extra")] },
    { webhooks: [entry("/validate/shadow/placement"), { clientConfig: { url: "https://elsewhere" } }, null] },
    undefined,
  ];
  const hooks = [
    hook("placement", { phase: "mutate" }),
    hook("steering", { phase: "mutate" }),
    hook("asked"),
    hook("shadow", { askedAs: "asked" }),
  ];
  expect(unsupportedHooks(registered, hooks)).toEqual(["mutate/extra", "validate/placement"]);
  expect(unsupportedHooks([undefined, {}], [])).toEqual([]);
});

test("whether a replica is ready is that of the last look at the endpoints, whatever else can't be read", async () => {
  const server = new TestApiServer();
  const supported = supportedHooks(server.client);
  expect(supported.isReady).toBe(false);
  server.put(SLICE, { endpoints: [endpoint("one", "ready")] });
  const usual = server.fault;
  const failing = (part: string) => {
    server.fault = async (_method, path, ...rest) =>
      path.includes(part) ? answerOf(500, {}) : usual?.(_method, path, ...rest);
  };
  failing("configmaps");
  await supported.refresh();
  expect(supported.isReady).toBe(true);
  failing("endpointslices");
  await supported.refresh();
  expect(supported.isReady).toBe(false);
});

describe("calls may have failed", () => {
  /** `r` is ready, `d` is drained, `n` is neither. */
  const seen = (pods: string, version: string): ServiceEndpoints => ({
    endpoints: [...pods].map((state, i) => ({
      pod: `usher-${i}`,
      ready: state === "r",
      serves: state === "r" || state === "d",
    })),
    version,
  });

  test.each<[boolean, string, string, string]>([
    [false, "while no endpoint changes", "rr", "same"],
    [false, "while no replica is ready", "n", "nn"],
    [true, "when one is ready after none was", "n", "r"],
    [true, "when one is ready after none existed", "", "r"],
    [false, "when one more is ready", "r", "rr"],
    [false, "when one more starts", "r", "rn"],
    [false, "when one is drained", "rr", "rd"],
    [false, "when a drained one is gone", "rd", "r"],
    [true, "when one is no longer ready", "rr", "rn"],
    [true, "when one is gone", "rr", "r"],
    [true, "when the last one is gone", "r", ""],
    [true, "when an endpoint changed and is as before", "rr", "rr"],
    [true, "when no replica is ready in both looks", "rn", "dr"],
    [false, "when one of the ready replicas is drained, and another one gets ready", "rrn", "rdr"],
  ])("%s: %s", (expected, _, before, now) => {
    const first = seen(before, "1");
    expect(callsMayHaveFailed(first, now === "same" ? first : seen(now, "2"))).toBe(expected);
  });

  test("before the first look", () => {
    expect(callsMayHaveFailed(undefined, seen("r", "1"))).toBe(true);
  });

  test("when a replica announces it, once for each announcement", async () => {
    const server = new TestApiServer();
    server.put(SLICE, { endpoints: [endpoint("one", "ready")] });
    const one = announcement(server, "one", [OLD]);
    await one.publish();
    const supported = supportedHooks(server.client);
    expect([await supported.refresh(), await supported.refresh()]).toEqual([true, false]);
    for (let i = 0; i < 3; i++) one.callFailed();
    await vi.waitFor(async () => expect(await supported.refresh()).toBe(true));
    expect(await supported.refresh()).toBe(false);
    expect(supported.has(OLD)).toBe(true);
    // The next announcement waits for a minute.
    one.callFailed();
    await one.stop();
    expect(server.answered.filter((line) => line.startsWith("PATCH"))).toHaveLength(2);
    // A removed announcement is not a failure.
    expect(await supported.refresh()).toBe(false);
  });
});
