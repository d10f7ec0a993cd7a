// The chart in a real cluster, by both generations of helm: installed, tested, upgraded, rolled back, removed.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { at, type JsonObject, listAt } from "../../src/core/json.ts";
import { eventually } from "../cluster/access/wait.ts";
import { ensureTool } from "../cluster/binaries.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { RUN_LABEL } from "../cluster/runner/label.ts";
import { CHART, Helm, type Ran, valuesFlag } from "./fixtures/helm.ts";

const HOOKS = "/apis/admissionregistration.k8s.io/v1";
const CONFIGURATIONS = ["mutating", "validating"].map(
  (phase) => `${HOOKS}/${phase}webhookconfigurations/usher`,
);
const POLICIES = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies";
const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CRD = `${CRDS}/clusterpodschedulingpolicies.kupid.gardener.cloud`;
const SPEC = [
  "spec",
  "versions",
  0,
  "schema",
  "openAPIV3Schema",
  "properties",
  "spec",
  "properties",
] as const;
const TIMEOUT = ["--timeout", "100s"];

function policy(spec: JsonObject): JsonObject {
  return {
    apiVersion: "kupid.gardener.cloud/v1alpha1",
    kind: "ClusterPodSchedulingPolicy",
    metadata: { name: "etcd" },
    spec: {
      namespaceSelector: {},
      podSelector: { matchLabels: { role: "etcd" } },
      nodeSelector: { pool: "etcd" },
      ...spec,
    },
  };
}

describeOwnCluster("the chart in a cluster", {}, (cluster) => {
  const folder = mkdtempSync(join(tmpdir(), "usher-helm-"));
  let kubeconfig = "";
  const helms = new Map<string, Helm>();
  beforeAll(async () => {
    kubeconfig = await cluster().kubeconfig();
    for (const tool of ["helm", "helm3"] as const) helms.set(tool, new Helm(await ensureTool(tool), folder));
    await cluster().createNode("n1");
  }, 30 * 60_000);
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  const exists = async (path: string) => (await cluster().request("GET", path)).status === 200;
  const run = async (tool: string, ...args: string[]): Promise<Ran> => {
    const ran = await (helms.get(tool) as Helm).run(...args, "--kubeconfig", kubeconfig, "-n", "hall");
    expect(ran.code, `${args.join(" ")}\n${ran.out}\n${ran.err}`).toBe(0);
    return ran;
  };
  const values = (more: JsonObject = {}): string[] =>
    valuesFlag({ replicas: 1, podLabels: { [RUN_LABEL]: "true" }, ...more });
  const webhooks = () =>
    eventually("both webhooks", async () => (await Promise.all(CONFIGURATIONS.map(exists))).every(Boolean));

  test.each(["helm", "helm3"])(
    "%s installs, tests, upgrades, rolls back and uninstalls it",
    async (tool) => {
      await run(
        tool,
        "install",
        "usher",
        CHART,
        "--create-namespace",
        "--wait",
        ...TIMEOUT,
        ...values({ policies: [policy({})] }),
      );
      expect(at(await cluster().call("GET", `${POLICIES}/etcd`), "spec", "nodeSelector")).toEqual({
        pool: "etcd",
      });
      await webhooks();
      const tested = await run(tool, "test", "usher", ...TIMEOUT);
      expect(tested.out).toMatch(/Phase: +Succeeded/);

      // The CRD of an older usher, without a field that policies of the new chart have.
      const fields = Object.keys(at(await cluster().call("GET", CRD), ...SPEC) as JsonObject);
      expect(fields).toContain("priority");
      await cluster().call("PATCH", CRD, [
        { op: "remove", path: `/${SPEC.join("/")}/priority` },
        { op: "add", path: "/metadata/labels/app.kubernetes.io~1version", value: "0.0.1" },
      ]);
      await run(
        tool,
        "upgrade",
        "usher",
        CHART,
        "--wait",
        ...TIMEOUT,
        ...values({ policies: [policy({ priority: 7 })] }),
      );
      expect(at(await cluster().call("GET", `${POLICIES}/etcd`), "spec", "priority")).toBe(7);

      // A newer CRD than the chart's stays, also when the release goes back.
      await cluster().call("PATCH", CRD, { metadata: { labels: { "app.kubernetes.io/version": "99.0.0" } } });
      await run(tool, "rollback", "usher", "1", "--wait", ...TIMEOUT);
      const crd = await cluster().call("GET", CRD);
      expect(at(crd, "metadata", "labels", "app.kubernetes.io/version")).toBe("99.0.0");
      expect(at(crd, ...SPEC, "priority")).toBeDefined();
      await cluster().call("PATCH", CRD, { metadata: { labels: { "app.kubernetes.io/version": "0.1.0" } } });

      await run(tool, "uninstall", "usher", "--wait", ...TIMEOUT);
      await eventually(
        "no webhooks",
        async () => !(await Promise.all(CONFIGURATIONS.map(exists))).includes(true),
        60_000,
      );
      expect(await exists(CRD)).toBe(true);
      expect(await exists(`${POLICIES}/etcd`)).toBe(true);
      const left = listAt(await cluster().call("GET", "/apis/batch/v1/namespaces/hall/jobs"), "items");
      expect(left).toEqual([]);
    },
    240_000,
  );
});
