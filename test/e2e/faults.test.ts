import { randomUUID } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ReflectorLimits } from "../../src/cluster/informers/reflector-limits.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeCluster, LONG, testNamespace } from "../cluster/describe.ts";
import { GROUP, greeter } from "../conformance/modules.ts";
import { ConsistencyCheck } from "./consistency-check.ts";
import { FaultProxy } from "./fault-proxy.ts";
import { installKinds, openLive, viewEqualsList } from "./live-source.ts";

/** For stalls: `npm run test:long` waits for one with the default limits. */
const LIMITS: Partial<ReflectorLimits> = { idleTimeoutMs: 3_000 };

/** Longer than a TLS record, so that a cut inside it leaves half a line and not just half a record. */
const MUCH = "ä€😀".repeat(20_000);

describeCluster("an informer cache through a network that breaks", (cluster) => {
  const namespace = testNamespace(cluster);
  let proxy: FaultProxy;

  beforeAll(async () => {
    await installKinds(cluster(), [greeter]);
    proxy = new FaultProxy(cluster().server);
    await proxy.listen();
  });
  afterAll(() => proxy.close());

  const configMaps = (): string => `/api/v1/namespaces/${namespace()}/configmaps`;
  const create = async (app: string, data = ""): Promise<string> => {
    const name = `t-${randomUUID().slice(0, 8)}`;
    await cluster().call("POST", configMaps(), { metadata: { name, labels: { app } }, data: { data } });
    return name;
  };
  const relabel = (name: string, app: string, data = ""): Promise<unknown> =>
    cluster().call("PATCH", `${configMaps()}/${name}`, { metadata: { labels: { app } }, data: { data } });
  const remove = (name: string): Promise<unknown> => cluster().call("DELETE", `${configMaps()}/${name}`);
  const greetings = `/apis/${GROUP}/v1/greetings`;
  const greet = async (word: string, name = `t-${randomUUID().slice(0, 8)}`): Promise<string> => {
    const greeting = { apiVersion: `${GROUP}/v1`, kind: "Greeting", metadata: { name }, spec: { word } };
    await cluster().call("POST", greetings, greeting);
    return name;
  };
  const open = (limits: Partial<ReflectorLimits> = {}) =>
    openLive(cluster(), [greeter], { address: proxy.address, limits });
  const relists = (source: Awaited<ReturnType<typeof open>>["source"]): number =>
    source.cache.status().reduce((sum, status) => sum + status.relists, 0);

  const faults: readonly [string, () => void | Promise<void>][] = [
    ["a cut", () => proxy.cut()],
    ["a reset", () => proxy.reset()],
    ["a truncated line", () => proxy.truncateAfter(40_000)],
    ["a stalled connection", () => proxy.silence()],
    [
      "an outage",
      async () => {
        proxy.refuse(true);
        proxy.reset();
        await sleep(3_000);
        proxy.refuse(false);
      },
    ],
    [
      "a slow network",
      async () => {
        proxy.delay(200);
        await sleep(1_000);
        proxy.delay(0);
      },
    ],
  ];

  test.each(faults)("after %s it recovers without a relist", async (_, fault) => {
    await using live = await open(LONG ? {} : LIMITS);
    await live.source.cache.waitForSync();
    const [kept, changed, gone] = [await create("kept"), await create("before"), await create("gone")];
    await viewEqualsList(cluster(), live.source);

    const broken = fault();
    await relabel(changed, "after", MUCH);
    await remove(gone);
    const added = await create("added", MUCH);
    await broken;

    await viewEqualsList(cluster(), live.source);
    const { view } = live.source.assembly;
    const apps = (app: string): number => [...view.lookup("configmaps", "app", app)].length;
    expect(view.get("configmaps", namespace(), gone)).toBeUndefined();
    expect(view.get("configmaps", namespace(), changed)).toMatchObject({
      metadata: { labels: { app: "after" } },
    });
    expect(apps("before")).toBe(0);
    expect(relists(live.source)).toBe(0);
    // And it continues.
    await relabel(added, "again");
    await viewEqualsList(cluster(), live.source);
    for (const name of [kept, changed, added]) await remove(name);
    await viewEqualsList(cluster(), live.source);
  });

  test.each(faults)("through %s every decision follows an old or a new state", async (_, fault) => {
    const [kept, changed, gone] = [await greet("hello"), await greet("before"), await greet("bye")];
    await using live = await open(LIMITS);
    await live.source.cache.waitForSync();
    const later = `t-${randomUUID().slice(0, 8)}`;
    using consistency = new ConsistencyCheck(live.source, {
      [kept]: ["hello"],
      [changed]: ["before", "after"],
      [gone]: ["bye", undefined],
      [later]: [undefined, "late"],
    });
    const broken = fault();
    await cluster().call("PATCH", `${greetings}/${changed}`, { spec: { word: "after" } });
    await cluster().call("DELETE", `${greetings}/${gone}`);
    await greet("late", later);
    await broken;
    await eventually("the current state in decisions", () => consistency.done);
    expect(consistency.wrong).toEqual([]);
    expect(consistency.decisions).toBeGreaterThan(0);
    for (const name of [kept, changed, later]) await cluster().call("DELETE", `${greetings}/${name}`);
  });

  test.each([200, 3_000, 12_000, 40_000])(
    "a first list that breaks after %i bytes is completed",
    async (bytes) => {
      const names = [await create("first", MUCH), await create("second", MUCH)];
      await using live = await open();
      await eventually("a connection", () => proxy.size > 0);
      proxy.truncateAfter(bytes);
      await live.source.cache.waitForSync();
      await viewEqualsList(cluster(), live.source);
      for (const name of names) await remove(name);
    },
  );

  test("is consistent in the end after consecutive faults with continuous writes", async () => {
    await using live = await open(LIMITS);
    let going = true;
    const names: string[] = [];
    const writer = (async () => {
      for (let i = 0; going; i++) {
        names.push(await create(`n${i % 3}`));
        const [other] = names.splice(Math.floor(names.length / 2), i % 2);
        if (other !== undefined) await remove(other);
        const last = names.at(-1);
        if (last !== undefined) await relabel(last, `m${i % 3}`);
        await sleep(20);
      }
    })();
    for (const [, fault] of [...faults, ...faults]) {
      await fault();
      await sleep(700);
    }
    going = false;
    await writer;
    await viewEqualsList(cluster(), live.source);
    expect(live.source.ready).toBe(true);
    for (const name of names) await remove(name);
    await viewEqualsList(cluster(), live.source);
  });
});
