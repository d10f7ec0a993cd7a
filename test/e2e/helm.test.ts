// The chart in a real cluster, with both generations of helm: installed, tested, upgraded to a later version, rolled
// back, removed.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { at, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { eventually } from "../cluster/access/wait.ts";
import { ensureTool } from "../cluster/binaries.ts";
import { describeOwnCluster, LONG } from "../cluster/describe.ts";
import { RUN_LABEL } from "../cluster/runner/label.ts";
import { NEW_FIELD, NEXT, type NextVersion, nextVersion } from "../skew/next-version.ts";
import { CHART, Helm, type Ran, valuesFlag } from "./fixtures/helm.ts";
import { CONFIGURATIONS, entriesOf, POLICIES, placingPolicy, webhooksGone } from "./fixtures/placed-pods.ts";

const CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const CRD = `${CRDS}/clusterpodschedulingpolicies.kupid.gardener.cloud`;
const SCHEMA = ["spec", "versions", 0, "schema", "openAPIV3Schema", "properties", "spec"] as const;
const DEPLOYMENT = "/apis/apps/v1/namespaces/hall/deployments/usher";
const PODS = "/api/v1/namespaces/hall/pods?labelSelector=app.kubernetes.io/component%3Dadmission";
const NODE = "/api/v1/nodes/n1";
const TAINT = { key: "usher.dev/starting", effect: "NoSchedule" };
const WAIT = ["--wait", "--timeout", "100s"];

let next: NextVersion | undefined;
afterAll(() => next?.remove());
const options = async () => {
  next = nextVersion();
  return { images: { usher: ["node", "src/cli/main.ts"], "usher-next": next.command } };
};

describeOwnCluster("the chart in a cluster", options, (cluster) => {
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
    valuesFlag({ replicas: null, podLabels: { [RUN_LABEL]: "true" }, ...more });
  const webhooks = () =>
    eventually("both webhooks", async () => (await Promise.all(CONFIGURATIONS.map(exists))).every(Boolean));
  const verified = async (tool: string) =>
    expect((await run(tool, "test", "usher", "--timeout", "100s")).out).toMatch(/Phase: +Succeeded/);
  const crd = async () => {
    const live = await cluster().call("GET", CRD);
    return {
      version: at(live, "metadata", "labels", "app.kubernetes.io/version"),
      field: at(live, ...SCHEMA, "properties", NEW_FIELD),
    };
  };
  const stored = async () => at(await cluster().call("GET", `${POLICIES}/etcd`), "spec", NEW_FIELD);
  const scale = async (replicas: number) => {
    await cluster().call("PATCH", `${DEPLOYMENT}/scale`, { spec: { replicas } });
    await eventually(
      `${replicas} replicas`,
      async () => {
        const live = await cluster().call("GET", DEPLOYMENT);
        // A terminating replica still works, but does not count.
        const pods = listAt(await cluster().call("GET", PODS), "items");
        return pods.length === replicas && Number(at(live, "status", "readyReplicas") ?? 0) === replicas;
      },
      60_000,
    );
  };
  /** The state after a leader ended before it was done: no leader runs that would free the node itself. */
  const leaveTaint = async () => {
    await scale(0);
    await cluster().call("PATCH", NODE, [{ op: "add", path: "/spec/taints", value: [TAINT] }]);
    expect(await tainted()).toBe(true);
  };
  /** No object of usher is left in the namespace, which Helm keeps: the private key is gone. */
  const nothingLeft = () =>
    eventually("the certificate, the Lease and the ConfigMaps to be gone", async () => {
      const names: string[] = [];
      for (const path of ["/api/v1", "/apis/coordination.k8s.io/v1"].flatMap((root) =>
        ["secrets", "configmaps", "leases"].map((one) => `${root}/namespaces/hall/${one}`),
      )) {
        const { status, body } = await cluster().request("GET", path);
        if (status === 200)
          names.push(...listAt(body, "items").map((one) => stringAt(one, "metadata", "name") ?? ""));
      }
      return names.filter((name) => name !== "kube-root-ca.crt").length === 0;
    });
  const tainted = async () =>
    listAt(await cluster().call("GET", NODE), "spec", "taints").some((one) => at(one, "key") === TAINT.key);

  /** A hook frees nodes, and the remaining objects are tested. */
  const switchOff = async (tool: string) => {
    await leaveTaint();
    const off = { enabled: false };
    const configuration = { modules: { placement: off, "node-labels": off } };
    const policies = [placingPolicy()];
    await run(tool, "upgrade", "usher", CHART, ...WAIT, ...values({ configuration, policies }));
    expect(await tainted()).toBe(false);
    await scale(1);
    await eventually("webhooks of the enabled modules", async () => {
      const names = (await entriesOf(cluster())).map((one) => stringAt(one, "name") ?? "");
      return names.length > 0 && !/placement|node-labels/.test(names.join());
    });
    await verified(tool);
  };

  // take-over.test.ts also installs, upgrades and uninstalls with helm 3; chart.test.ts lints and renders with both.
  test.each(LONG ? ["helm", "helm3"] : ["helm"])(
    "%s installs, tests, upgrades, also with modules off, rolls back and uninstalls it",
    async (tool) => {
      await run(
        tool,
        "install",
        "usher",
        CHART,
        "--create-namespace",
        ...WAIT,
        ...values({ policies: [placingPolicy()] }),
      );
      expect(at(await cluster().call("GET", `${POLICIES}/etcd`), "spec", "nodeSelector")).toEqual({
        pool: "etcd",
      });
      await webhooks();
      await verified(tool);
      await switchOff(tool);

      const later = {
        image: { repository: "usher-next" },
        policies: [placingPolicy({ [NEW_FIELD]: "etcd" })],
      };
      await run(tool, "upgrade", "usher", next?.chart ?? "", ...WAIT, ...values(later));
      expect(await stored()).toBe("etcd");
      expect(await crd()).toMatchObject({ version: NEXT, field: { type: "string" } });

      await run(tool, "rollback", "usher", "1", ...WAIT);
      const live = await cluster().call("GET", DEPLOYMENT);
      expect(stringAt(live, "spec", "template", "spec", "containers", 0, "image")).toBe("usher:0.1.0");
      expect(await crd()).toMatchObject({ version: NEXT, field: { type: "string" } });

      await leaveTaint();
      await run(tool, "uninstall", "usher", ...WAIT);
      expect(await tainted()).toBe(false);
      await webhooksGone(cluster());
      expect(await exists(CRD)).toBe(true);
      expect(await exists(`${POLICIES}/etcd`)).toBe(true);
      const left = listAt(await cluster().call("GET", "/apis/batch/v1/namespaces/hall/jobs"), "items");
      expect(left).toEqual([]);
      await nothingLeft();
      // As before the first installation.
      await cluster().call("DELETE", `${POLICIES}/etcd`);
      await cluster().call("DELETE", CRD);
      await eventually("no CRD", async () => !(await exists(CRD)));
    },
    240_000,
  );
});
