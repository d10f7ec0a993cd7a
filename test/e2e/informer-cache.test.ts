import { randomUUID } from "node:crypto";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type JsonObject, stringAt } from "../../src/core/json.ts";
import type { Module, Read } from "../../src/core/module/module.ts";
import { moduleThat } from "../builders/module.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeCluster, describeOwnCluster } from "../cluster/describe.ts";
import { GROUP, greeter } from "../conformance/modules.ts";
import { ConsistencyCheck } from "./consistency-check.ts";
import { FaultProxy } from "./fault-proxy.ts";
import { installKinds, openLive, viewEqualsList } from "./live-source.ts";

function reader(...reads: readonly Read[]): Module {
  return { ...moduleThat("reader", {}), reads };
}

const NODES: Read = {
  resource: "nodes",
  group: "",
  version: "v1",
  kind: "Node",
  scope: "Cluster",
  keep: [["metadata", "labels"]],
};

describeCluster("an informer cache", (cluster) => {
  test("a node's heartbeats are not changes, a label is one", async () => {
    const name = `node-${randomUUID().slice(0, 8)}`;
    await cluster().createNode(name);
    await using live = await openLive(cluster(), [reader(NODES)]);
    await live.source.cache.waitForSync();
    // Nothing was refused: this API server has streaming lists.
    expect(live.source.cache.status()).toMatchObject([
      { resource: "nodes", errors: 0, relists: 0, served: true },
    ]);
    const before = live.source.assembly.view.get("nodes", "", name);
    expect(stringAt(before, "metadata", "labels", "kubernetes.io/hostname")).toBe(name);
    expect(before).not.toHaveProperty("status");
    live.changes.length = 0;

    for (let i = 0; i < 50; i++) {
      const lastHeartbeatTime = new Date(Date.UTC(2026, 0, 1, 0, 0, i)).toISOString();
      const condition = { type: "DiskPressure", status: i % 2 === 0 ? "True" : "False", lastHeartbeatTime };
      await cluster().call("PATCH", `/api/v1/nodes/${name}/status`, { status: { conditions: [condition] } });
    }
    // A later event of the watch shows that all of them have been seen.
    await cluster().call("PATCH", `/api/v1/nodes/${name}`, { metadata: { labels: { seen: "yes" } } });
    await eventually("the label", () => live.changes.some((change) => change.name === name));
    const ours = live.changes.filter((change) => change.name === name);
    expect(ours).toHaveLength(1);
    expect(ours[0]?.object).toMatchObject({ metadata: { labels: { seen: "yes" } } });
    await cluster().call("DELETE", `/api/v1/nodes/${name}`);
  });

  test("the view has a write once the cache says that it has its resourceVersion, also if other objects change", async () => {
    const name = `node-${randomUUID().slice(0, 8)}`;
    await cluster().createNode(name);
    await using live = await openLive(cluster(), [reader(NODES)]);
    const { cache, assembly } = live.source;
    await cache.waitForSync();
    let waited = 0;
    for (let i = 0; i < 30; i++) {
      const labels = { round: String(i) };
      const written = await cluster().call("PATCH", `/api/v1/nodes/${name}`, { metadata: { labels } });
      const version = stringAt(written, "metadata", "resourceVersion") ?? "";
      if (!cache.has("nodes", version)) waited += 1;
      await eventually("the write", () => cache.has("nodes", version));
      expect(assembly.view.get("nodes", "", name)).toMatchObject({ metadata: { labels } });
    }
    // Without a barrier a controller would have planned with an old view this often.
    expect(waited).toBeGreaterThan(0);
    expect(cache.has("configmaps", "99999999")).toBe(true);
    expect(cache.has("nodes", "999999999999")).toBe(false);
    await cluster().call("DELETE", `/api/v1/nodes/${name}`);
  });

  test("a kind appears when its CRD is installed, and disappears with its CRD", async () => {
    const group = `late-${randomUUID().slice(0, 8)}.usher.dev`;
    const resource = `latecomers.${group}`;
    const read = {
      resource: "latecomers",
      group,
      version: "v1",
      kind: "Latecomer",
      scope: "Cluster",
      keep: [["spec"]],
      optional: true,
    } as const;
    const limits = { notServedMs: 300 };
    await using live = await openLive(cluster(), [reader(read)], { limits });
    await live.source.cache.waitForSync();
    const { view } = live.source.assembly;
    expect(view.served(resource)).toBe(false);
    expect(live.source.cache.status()).toMatchObject([{ resource, served: false, synced: false }]);

    const definition = `/apis/apiextensions.k8s.io/v1/customresourcedefinitions`;
    await cluster().call("POST", definition, latecomers(group));
    await eventually("it to be served", () => view.served(resource));
    expect(view.count(resource)).toBe(0);
    await cluster().call("POST", `/apis/${group}/v1/latecomers`, {
      apiVersion: `${group}/v1`,
      kind: "Latecomer",
      metadata: { name: "one" },
      spec: { word: "hello" },
    });
    await eventually("the object", () => view.get(resource, "", "one") !== undefined);
    expect(view.get(resource, "", "one")).toMatchObject({ kind: "Latecomer", spec: { word: "hello" } });

    await cluster().call("DELETE", `${definition}/${resource}`);
    await eventually("the object to go", () => view.count(resource) === 0);
    await eventually("it to be missing", () => live.source.cache.status()[0]?.served === false);
  });

  test("reads leader-only resources while leading, and drops them afterwards", async () => {
    const name = `node-${randomUUID().slice(0, 8)}`;
    await cluster().createNode(name);
    await using live = await openLive(cluster(), [reader({ ...NODES, leaderOnly: true })]);
    const { cache } = live.source;
    await cache.waitForSync();
    expect(live.source.ready).toBe(true);
    expect(live.source.assembly.view.count("nodes")).toBe(0);
    await cache.startLeading();
    expect(live.source.assembly.view.get("nodes", "", name)).toBeDefined();
    await cache.stopLeading();
    expect(live.source.assembly.view.count("nodes")).toBe(0);
    await cache.startLeading();
    expect(live.source.assembly.view.get("nodes", "", name)).toBeDefined();
    await cluster().call("DELETE", `/api/v1/nodes/${name}`);
  });

  test("a required kind that is not served blocks readiness, and the status names it", async () => {
    const missing = { ...NODES, resource: "latecomers", group: "never.usher.dev", kind: "Latecomer" };
    await using live = await openLive(cluster(), [reader(NODES, missing)], { limits: { notServedMs: 300 } });
    await eventually("both to be known", () => {
      const [nodes, other] = live.source.cache.status();
      return nodes?.synced === true && other?.served === false;
    });
    expect(live.source.ready).toBe(false);
  });
});

describeOwnCluster(
  "an informer cache of an API server without streaming lists, which restarts",
  {
    without: ["kube-controller-manager", "kube-scheduler", "kwok"],
    flags: { "kube-apiserver": ["--feature-gates=WatchList=false"] },
  },
  (cluster) => {
    const configMaps = "/api/v1/namespaces/default/configmaps";
    let proxy: FaultProxy;

    beforeAll(async () => {
      await installKinds(cluster(), [greeter]);
      for (let i = 0; i < 25; i++) {
        const metadata = { name: `c-${String(i).padStart(2, "0")}`, labels: { app: "many" } };
        await cluster().call("POST", configMaps, { metadata });
      }
      proxy = new FaultProxy(cluster().server);
      await proxy.listen();
    });
    afterAll(() => proxy.close());

    test("lists in pages", async () => {
      await using live = await openLive(cluster(), [greeter], { limits: { pageLimit: 4 } });
      await live.source.cache.waitForSync();
      await viewEqualsList(cluster(), live.source);
      expect([...live.source.assembly.view.lookup("configmaps", "app", "many")]).toHaveLength(25);
    });

    test("retries a page that broke", async () => {
      proxy.delay(20);
      await using live = await openLive(cluster(), [greeter], {
        address: proxy.address,
        limits: { pageLimit: 2 },
      });
      await eventually("a connection", () => proxy.size > 0);
      for (let i = 0; i < 5 && !live.source.ready; i++) {
        proxy.truncateAfter(6_000);
        await new Promise((resolve) => setTimeout(resolve, 150));
      }
      proxy.delay(0);
      await live.source.cache.waitForSync();
      await viewEqualsList(cluster(), live.source);
    });

    test("keeps its objects through a restart, and then follows changes", async () => {
      const greetings = `/apis/${GROUP}/v1/greetings`;
      const greet = (name: string, word: string) =>
        cluster().call("POST", greetings, {
          apiVersion: `${GROUP}/v1`,
          kind: "Greeting",
          metadata: { name },
          spec: { word },
        });
      await greet("kept", "hello");
      await greet("gone", "bye");
      await using live = await openLive(cluster(), [greeter]);
      await live.source.cache.waitForSync();
      using consistency = new ConsistencyCheck(live.source, {
        kept: ["hello"],
        gone: ["bye", undefined],
        later: [undefined, "late"],
      });
      await viewEqualsList(cluster(), live.source);
      const { view } = live.source.assembly;
      const before = view.count("configmaps");

      await cluster().component("kube-apiserver").stop("at once");
      expect(live.source.ready).toBe(true);
      expect(view.count("configmaps")).toBe(before);
      await cluster().component("kube-apiserver").start();
      await cluster().call("POST", configMaps, { metadata: { name: "after", labels: { app: "after" } } });
      await cluster().call("DELETE", `${configMaps}/c-00`);
      await cluster().call("DELETE", `${greetings}/gone`);
      await greet("later", "late");
      await viewEqualsList(cluster(), live.source);
      expect([...view.lookup("configmaps", "app", "after")]).toHaveLength(1);
      await eventually("the current state in decisions", () => consistency.done);
      expect(consistency.wrong).toEqual([]);
    });
  },
);

function latecomers(group: string): JsonObject {
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `latecomers.${group}` },
    spec: {
      group,
      scope: "Cluster",
      names: { kind: "Latecomer", plural: "latecomers", singular: "latecomer" },
      versions: [
        {
          name: "v1",
          served: true,
          storage: true,
          schema: {
            openAPIV3Schema: {
              type: "object",
              properties: { spec: { type: "object", properties: { word: { type: "string" } } } },
            },
          },
        },
      ],
    },
  };
}
