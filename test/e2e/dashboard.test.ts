import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { expect, test } from "vitest";
import type * as Model from "../../src/dashboard/model.ts";
import { folder } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeCluster, testNamespace } from "../cluster/describe.ts";
import { startDashboard } from "../dashboard/example.ts";
import { sessionOf } from "../support/dashboard/dashboard.ts";
import { FaultProxy } from "./fault-proxy.ts";

describeCluster("the dashboard's process on a cluster", (cluster) => {
  const namespace = testNamespace(cluster);

  /** A dashboard with the rights of a kubeconfig. */
  async function open(kubeconfig: string) {
    const { url, origin, stop } = await startDashboard(["--kubeconfig", kubeconfig]);
    const cookie = await sessionOf({ url });
    const get = async <Body>(path: string): Promise<Body> => {
      const response = await fetch(`${origin}${path}`, { headers: { cookie } });
      return (await response.json()) as Body;
    };
    return { get, stop };
  }

  /** The same cluster at another address. */
  function through(kubeconfig: string, address: string): string {
    const text = readFileSync(kubeconfig, "utf8").replace(cluster().server, address);
    const file = `${folder({ config: "" })}/config`;
    writeFileSync(file, text);
    return file;
  }

  const pod = (name: string) => ({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: namespace() },
    spec: {
      containers: [{ name: "web", image: "web:1", env: [{ name: "PASSWORD", value: "hunter2-e2e" }] }],
    },
  });

  test("shows pods as they come, never a value of their environment, and sends nothing but reads", async () => {
    const user = `viewer-${randomUUID().slice(0, 8)}`;
    const dashboard = await open(await cluster().kubeconfig(user, ["system:masters"]));
    try {
      const name = `web-${randomUUID().slice(0, 8)}`;
      await cluster().call("POST", `/api/v1/namespaces/${namespace()}/pods`, pod(name));
      const detail = await eventually("the pod", async () => {
        const found = await dashboard.get<Model.PodDetail>(`/api/pods/${namespace()}/${name}`);
        expect(found.name).toBe(name);
        return found;
      });
      expect(detail.values.length).toBeGreaterThan(2);
      const where = `kind=Pod&namespace=${namespace()}&name=${name}`;
      const explained = JSON.stringify(await dashboard.get(`/api/explain?${where}`));
      expect(explained).toContain('"verdict"');
      const manifest = await dashboard.get<Model.EditableManifest>(`/api/manifest?${where}`);
      expect(manifest.yaml).toContain("PASSWORD");
      expect(`${explained}${manifest.yaml}`).not.toContain("hunter2-e2e");
      // The pod may be shown before the last resource was read.
      await eventually("a live source that is ready", async () => {
        const { source } = await dashboard.get<Model.Overview>("/api/overview");
        return source.live && source.state === "ready";
      });
      const verbs = new Set(
        cluster()
          .auditLog()
          .filter((entry) => entry.user.username === user)
          .map(({ verb }) => verb),
      );
      expect(verbs).toContain("watch");
      expect([...verbs].filter((verb) => !["get", "list", "watch"].includes(verb))).toEqual([]);
    } finally {
      await dashboard.stop();
    }
  });

  test("without rights names every resource that can't be read, and shows the rest", async () => {
    const dashboard = await open(await cluster().kubeconfig(`guest-${randomUUID().slice(0, 8)}`));
    try {
      await eventually("what can't be read", async () => {
        const { source } = await dashboard.get<Model.Overview>("/api/overview");
        expect(source.partial.join("\n")).toMatch(/pods.*forbidden/i);
        return true;
      });
      expect(await dashboard.get<Model.NodeMap>("/api/map")).toMatchObject({ nodes: [], whole: true });
      // Events are read apart from everything else.
      await eventually("what can't be read of decisions", async () => {
        expect(await dashboard.get("/api/decisions")).toMatchObject({
          note: expect.stringMatching(/can't be read/),
        });
        return true;
      });
    } finally {
      await dashboard.stop();
    }
  });

  test("says that the API server went away, keeps the last state, and goes on when it is back", async () => {
    const proxy = new FaultProxy(cluster().server);
    await proxy.listen();
    const dashboard = await open(through(await cluster().kubeconfig(), proxy.address));
    const state = async () => (await dashboard.get<Model.Overview>("/api/overview")).source.state;
    try {
      await eventually("ready", async () => (await state()) === "ready");
      const { counts } = await dashboard.get<Model.Overview>("/api/overview");
      proxy.refuse(true);
      proxy.reset();
      await eventually("stale", async () => (await state()) === "stale");
      expect((await dashboard.get<Model.Overview>("/api/overview")).counts.namespaces).toBe(
        counts.namespaces,
      );
      proxy.refuse(false);
      await eventually("ready", async () => (await state()) === "ready");
      const name = `back-${randomUUID().slice(0, 8)}`;
      await cluster().call("POST", `/api/v1/namespaces/${namespace()}/pods`, pod(name));
      await eventually(
        "the pod after the break",
        async () => (await dashboard.get<Model.PodDetail>(`/api/pods/${namespace()}/${name}`)).name === name,
      );
    } finally {
      await dashboard.stop();
      await proxy.close();
    }
  });
});
