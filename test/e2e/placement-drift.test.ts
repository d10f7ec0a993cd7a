// Drift from changed and deleted policies, found and repaired by an administrator on a real control plane.
import { beforeAll, expect, test } from "vitest";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { program } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster, LONG } from "../cluster/describe.ts";
import { configured, install, REPLICAS } from "./fixtures/install.ts";
import { PlacementStage, podSpecOf, SPEC, warningsOf } from "./fixtures/placement-stage.ts";

const USHER = "/apis/apps/v1/namespaces/usher-system/deployments/usher";
const POLICY = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies/pool";
const NAMESPACE = "shop";
const REAPPLY = "usher.dev/reapply";

const toleration = (value: string): JsonObject => ({ key: "pool", operator: "Equal", value });
const wants = (pool: string): JsonObject => ({
  podSelector: { matchLabels: { app: "etcd" } },
  nodeSelector: { pool },
  tolerations: [toleration(pool)],
});
const deployment = (name: string): JsonObject => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name, namespace: NAMESPACE },
  spec: {
    replicas: 1,
    selector: { matchLabels: { name } },
    template: { metadata: { labels: { app: "etcd", name } }, spec: SPEC },
  },
});

describeOwnCluster("drift of stored workloads", {}, (cluster) => {
  const stage = new PlacementStage(cluster, NAMESPACE);

  const usher = async (user: string | undefined, ...args: string[]) => {
    const kubeconfig = await cluster().kubeconfig(user);
    return program(["placement", ...args, "--kubeconfig", kubeconfig]);
  };
  const status = async (...args: string[]) => {
    const ran = await usher(undefined, "status", "-n", NAMESPACE, "-o", "json", ...args);
    return { ...ran, json: JSON.parse(ran.out || "null") as Json };
  };
  /** `web stale, late missing` */
  const states = (json: Json): string =>
    listAt(json, "workloads")
      .flatMap((one) =>
        listAt(one, "carries").map(
          (carried) => `${stringAt(one, "object", "name")} ${stringAt(carried, "state")}`,
        ),
      )
      .join(", ");
  const poolOf = async (name: string) =>
    at(podSpecOf(await stage.get(`deployments/${name}`)), "nodeSelector", "pool");
  const versionOf = async (name: string) =>
    stringAt(await stage.get(`deployments/${name}`), "metadata", "resourceVersion");
  const replicaSets = async (name: string): Promise<number> => {
    const sets = await stage.items("replicasets");
    return sets.filter((set) => stringAt(set, "metadata", "labels", "name") === name).length;
  };
  /** Waits until controllers observed the change, so that their ReplicaSets exist. */
  const rolledOut = (name: string) =>
    eventually(`${name} rolled out`, async () => {
      const found = await stage.get(`deployments/${name}`);
      return (
        at(found, "status", "observedGeneration") === at(found, "metadata", "generation") &&
        at(found, "status", "updatedReplicas") === 1 &&
        at(found, "status", "replicas") === 1
      );
    });
  const scaleUsher = async (replicas: number) => {
    await cluster().call("PATCH", USHER, { spec: { replicas } });
    await eventually(`${replicas} replicas of usher`, async () => {
      const ready = Number(at(await cluster().call("GET", USHER), "status", "readyReplicas") ?? 0);
      // A terminating replica serves for some seconds.
      const pods = listAt(await cluster().call("GET", REPLICAS), "items");
      return ready === replicas && pods.length === replicas;
    });
  };

  beforeAll(async () => {
    for (const pool of ["etcd", "nvme"]) await cluster().createNode(`node-${pool}`, { labels: { pool } });
    await cluster().createNode("plain");
    await stage.install();
    await stage.policies({ pool: wants("etcd") });
    for (const name of ["web", "db"]) await stage.call("POST", "deployments", deployment(name));
    for (const name of ["web", "db"]) await rolledOut(name);
  });

  test("workloads that match their policy are current", async () => {
    const { json, code, err } = await status();
    expect(states(json), err).toBe("db current, web current");
    expect(code).toBe(0);
  });

  test("usher reads workloads, and may not write them", async () => {
    const role = await cluster().call("GET", "/apis/rbac.authorization.k8s.io/v1/clusterroles/usher");
    const rules = listAt(role, "rules").filter((rule) => listAt(rule, "resources").includes("deployments"));
    expect(new Set(rules.flatMap((rule) => listAt(rule, "verbs")))).toEqual(new Set(["get", "list"]));
  });

  test("after a policy change they are stale, and a dry run only shows what would change", async () => {
    await stage.policies({ pool: wants("nvme") });
    const { json, code } = await status();
    expect(states(json)).toBe("db stale, web stale");
    expect(code).toBe(1);
    const before = await versionOf("web");
    const dry = await usher(undefined, "reapply", "--policy", "pool", "-n", NAMESPACE, "--dry-run");
    expect(dry.out).toMatch(/Deployment shop\/web +would change +~ nodeSelector\.pool etcd -> nvme/);
    expect(dry.out).toContain("2 workloads: 2 would change");
    expect(dry.err).toContain("dry run: nothing was changed");
    expect(dry.code).toBe(0);
    expect(await versionOf("web")).toBe(before);
    expect(await poolOf("web")).toBe("etcd");
  });

  test("reapply rolls them out once, and a second one does nothing", async () => {
    const ran = await usher(undefined, "reapply", "--policy", "pool", "-n", NAMESPACE, "--parallel", "1");
    expect(ran.out, ran.err).toMatch(/Deployment shop\/web +renewed +~ nodeSelector\.pool etcd -> nvme/);
    expect(ran.out).toContain("2 workloads: 2 renewed");
    expect(ran.out).not.toContain("would change");
    expect(ran.code).toBe(0);
    for (const name of ["web", "db"]) {
      await rolledOut(name);
      expect(await poolOf(name)).toBe("nvme");
      const found = await stage.get(`deployments/${name}`);
      expect(podSpecOf(found)["tolerations"]).toEqual([toleration("nvme")]);
      expect(at(found, "metadata", "annotations", REAPPLY)).toBeUndefined();
    }
    const before = await versionOf("web");
    const again = await usher(undefined, "reapply", "deployment/web", "-n", NAMESPACE);
    expect(again.out).toContain("1 workload: 0 renewed, 1 unchanged");
    expect(again.code).toBe(0);
    expect(await versionOf("web")).toBe(before);
    expect((await usher(undefined, "reapply", "--all", "-n", NAMESPACE)).out).toContain(
      "no workloads to change",
    );
    expect(await replicaSets("web")).toBe(2);
    expect(await replicaSets("db")).toBe(2);
    expect((await status()).code).toBe(0);
  });

  test("the status of the policy counts workloads", async () => {
    // A changed policy triggers a scan; one that ran between the change of the pool and the reapply has counted stale
    // workloads.
    await stage.policies({
      none: { podSelector: { matchLabels: { app: "none" } }, nodeSelector: { pool: "none" } },
    });
    await eventually(
      "the workloads in the status",
      async () => at(await cluster().call("GET", POLICY), "status", "workloads", "current") === 2,
      100_000,
    );
    expect(at(await cluster().call("GET", POLICY), "status", "workloads")).toEqual({
      current: 2,
      stale: 0,
      orphaned: 0,
      missing: 0,
    });
    await stage.dropPolicy("none");
  });

  test("reapply by name needs the permission to patch, and none to read policies", async () => {
    for (const [user, role] of [
      ["reader", "view"],
      ["writer", "edit"],
    ] as const)
      await stage.kubectl(["create", "rolebinding", user, `--clusterrole=${role}`, `--user=${user}`]);
    await stage.policies({ pool: wants("etcd") });
    const reader = await usher("reader", "reapply", "deployment/web", "-n", NAMESPACE);
    expect(reader.code).toBe(1);
    expect(reader.err).toMatch(/Deployment shop\/web: not allowed to patch: .*User "reader" cannot patch/);
    const all = await usher("writer", "reapply", "--all", "-n", NAMESPACE);
    expect(all.code).toBe(3);
    expect(all.err).toMatch(/not allowed to list namespaces.*reapply KIND\/NAME/);
    const writer = await usher("writer", "reapply", "deployment/web", "-n", NAMESPACE);
    expect(writer.out, writer.err).toContain("1 workload: 1 renewed");
    expect(await poolOf("web")).toBe("etcd");
  });

  test("injections of a deleted policy are orphaned, and reapply removes them", async () => {
    await stage.dropPolicy("pool");
    const { json, out } = await status();
    expect(states(json)).toBe("db orphaned, web orphaned");
    expect(out).toContain('"gone": true');
    expect((await status("pol")).err).toContain('did you mean "pool"?');
    const ran = await usher(undefined, "reapply", "--policy", "pool", "-A");
    expect(ran.out, ran.err).toContain("2 workloads: 2 renewed");
    for (const name of ["web", "db"]) {
      await rolledOut(name);
      const spec = podSpecOf(await stage.get(`deployments/${name}`));
      expect(spec["nodeSelector"]).toBeUndefined();
      expect(spec["tolerations"]).toBeUndefined();
    }
    expect(states((await status()).json)).toBe("");
  });

  test("while usher is down nothing is changed, and no reapply request stays on the object", async () => {
    await stage.policies({ pool: wants("etcd") });
    await stage.call("POST", "deployments", deployment("kept"));
    await scaleUsher(0);
    // Replaced without the injections.
    await stage.kubectl(["replace", "-f", "-"], deployment("kept"));
    await stage.call("POST", "deployments", deployment("late"));
    await stage.call("POST", "pods", { metadata: { name: "lone", labels: { app: "etcd" } }, spec: SPEC });
    await eventually(
      "the pod on its node",
      async () => at(await stage.get("pods/lone"), "spec", "nodeName") !== undefined,
    );
    expect(await poolOf("kept")).toBeUndefined();
    const ran = await usher(undefined, "reapply", "deployment/late", "-n", NAMESPACE);
    expect(ran.code).toBe(1);
    expect(ran.err).toContain("usher's webhook did not respond");
    expect(at(await stage.get("deployments/late"), "metadata", "annotations", REAPPLY)).toBeUndefined();
    await scaleUsher(1);
    await stage.stable();
  });

  test("workloads created in the meantime lack injections, and reapply adds them", async () => {
    const { json, code } = await status("pool");
    expect(states(json)).toBe("lone missing, db missing, kept missing, late missing, web missing");
    expect(code).toBe(1);
    await eventually(
      "an event about it",
      async () => {
        const events = listAt(await cluster().call("GET", "/apis/events.k8s.io/v1/events"), "items");
        return events.some(
          (event) =>
            stringAt(event, "reason") === "WorkloadsBehind" &&
            stringAt(event, "regarding", "name") === "pool" &&
            (stringAt(event, "note") ?? "").includes("4 missing"),
        );
      },
      60_000,
    );
    const { out } = await usher(undefined, "status", "-n", NAMESPACE);
    expect(out).toMatch(/Pod shop\/lone +missing [^\n]*\n[^!]*! can't be reapplied: the object is immutable/);
    const chosen = ["deployment/kept", "deploy/web", "deployments.apps/db"];
    const ran = await usher(undefined, "reapply", ...chosen, "-n", NAMESPACE, "-o", "json");
    expect(at(JSON.parse(ran.out) as Json, "summary"), ran.err).toMatchObject({ renewed: 3, failed: 0 });
    expect(await poolOf("kept")).toBe("etcd");
    expect(states((await status()).json)).toBe(
      "lone missing, db current, kept current, late missing, web current",
    );
  });

  test("with drift repair on, usher itself adds missing injections", async () => {
    await install(
      cluster(),
      "--replicas",
      "1",
      ...configured({ modules: { placement: { repairDrift: true } } }),
    );
    await eventually("late repaired", async () => (await poolOf("late")) === "etcd", 120_000);
    await eventually("one more ReplicaSet", async () => (await replicaSets("late")) === 2);
    expect(states((await status()).json)).toBe(
      "lone missing, db current, kept current, late current, web current",
    );
  });

  /** Node's heap size for the memory limit of the Deployment that usher installs, which the test's kubelet does not set. */
  const boundHeap = async () => {
    const template = ["spec", "template", "spec", "containers", 0] as const;
    const env = listAt(await cluster().call("GET", USHER), ...template, "env");
    const options = { name: "NODE_OPTIONS", value: "--max-semi-space-size=8 --max-old-space-size=256" };
    const value = [...env.filter((one) => stringAt(one, "name") !== options.name), options];
    await cluster().call("PATCH", USHER, [{ op: "replace", path: `/${template.join("/")}/env`, value }]);
    await eventually("the replica with that heap", async () => {
      const pods = listAt(await cluster().call("GET", REPLICAS), "items");
      const isReady = at(pods[0], "status", "containerStatuses", 0, "ready") === true;
      return pods.length === 1 && isReady && JSON.stringify(pods).includes(options.value);
    });
  };
  const replicas = async () =>
    listAt(await cluster().call("GET", REPLICAS), "items").map((pod) => [
      stringAt(pod, "metadata", "name"),
      at(pod, "status", "containerStatuses", 0, "restartCount"),
    ]);
  /** 1.28 MB, which the API server stores as sent. Sorted, because it sorts them in quadratic time. */
  const managed = (apiVersion: string): Json => {
    const annotations = Array.from({ length: 98_000 }, (_, i) => [`f:x${String(i).padStart(5, "0")}`, {}]);
    const fieldsV1 = { "f:metadata": { "f:annotations": Object.fromEntries(annotations) } };
    const by = { manager: "tenant", operation: "Update", time: "2026-01-01T00:00:00Z" };
    return [{ ...by, apiVersion, fieldsType: "FieldsV1", fieldsV1 }];
  };
  const FAT = 22;

  // A minute and a half, most of it in the API server; `fetch-heap.test.ts` reads such lists within a heap in every
  // run.
  if (LONG)
    test("a scan and a preview of objects with 1.28 MB of managed fields each complete, and usher survives", {
      timeout: 300_000,
    }, async () => {
      const namespace = "fat";
      const fat = new PlacementStage(cluster, namespace);
      // The next leader scans objects that were created while usher was down.
      if ((await cluster().request("GET", USHER)).status === 200) await scaleUsher(0);
      await fat.createNamespace(namespace, {});
      const createFat = async (resource: string, spec: JsonObject, apiVersion: string) => {
        const managedFields = managed(apiVersion);
        for (let i = 0; i < FAT; i++)
          await fat.call("POST", resource, { metadata: { name: `fat-${i}`, managedFields }, spec });
        expect(JSON.stringify(await fat.get(`${resource}/fat-0`)).length).toBeGreaterThan(1_280_000);
      };
      const labels = { app: "fat" };
      const template = { metadata: { labels }, spec: SPEC };
      await createFat("deployments", { replicas: 0, selector: { matchLabels: labels }, template }, "apps/v1");
      await createFat("pods", { ...SPEC, hostPID: true }, "v1");

      const modules = { "pod-os": { podSecurity: { mode: "Replace" } } };
      await install(cluster(), "--replicas", "1", ...configured({ modules }));
      await boundHeap();
      const before = await replicas();
      await stage.policies({ fat: { podSelector: { matchLabels: labels }, nodeSelector: { pool: "fat" } } });
      const path = POLICY.replace(/pool$/, "fat");
      await eventually(
        "a scan of all workloads",
        async () => at(await cluster().call("GET", path), "status", "workloads", "missing") === FAT,
        120_000,
      );
      const relabelled = await cluster().request("PATCH", `/api/v1/namespaces/${namespace}?dryRun=All`, {
        metadata: { labels: { "pod-security.kubernetes.io/enforce": "baseline" } },
      });
      expect([relabelled.status, warningsOf(relabelled)]).toEqual([
        200,
        expect.stringContaining("violate the new PodSecurity"),
      ]);
      expect(await replicas()).toEqual(before);
      expect(before).toEqual([[expect.any(String), 0]]);
    });
});
