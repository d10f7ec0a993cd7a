import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { at, type JsonObject, listAt, stringAt } from "../../src/core/json.ts";
import { program } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { configured } from "./fixtures/install.ts";

/** As on GKE: pods of system priority need a quota that admits them. */
const ADMISSION = {
  apiVersion: "apiserver.config.k8s.io/v1",
  kind: "AdmissionConfiguration",
  plugins: [
    {
      name: "ResourceQuota",
      configuration: {
        apiVersion: "apiserver.config.k8s.io/v1",
        kind: "ResourceQuotaConfiguration",
        limitedResources: [
          {
            resource: "pods",
            matchScopes: [
              {
                scopeName: "PriorityClass",
                operator: "In",
                values: ["system-cluster-critical", "system-node-critical"],
              },
            ],
          },
        ],
      },
    },
  ],
};

const directory = mkdtempSync(join(tmpdir(), "usher-admission-"));
const file = join(directory, "admission.json");
writeFileSync(file, JSON.stringify(ADMISSION));
afterAll(() => rmSync(directory, { recursive: true }));

const OPTIONS = { flags: { "kube-apiserver": [`--admission-control-config-file=${file}`] } };

/** As kubeadm creates them, and as it did before 1.24. */
const ROLES = ["control-plane", "master"].map((role) => `node-role.kubernetes.io/${role}`);

describeOwnCluster("a cluster that restricts system priority classes", OPTIONS, (cluster) => {
  const PODS = "/api/v1/namespaces/usher-system/pods";

  test("usher's pods are refused without its quota, and created with it, on control-plane nodes if configured", async () => {
    await cluster().createNode("worker");
    await cluster().createNode("cp", {
      labels: Object.fromEntries(ROLES.map((role) => [role, ""])),
      taints: ROLES.map((key) => ({ key, effect: "NoSchedule" })),
    });
    const settings = {
      controlPlaneNodes: true,
      networkPolicy: { enabled: true, webhookCidrs: ["10.0.0.0/28"] },
    };
    const { out } = await program(["manifests", "-o", "json", ...configured(settings)]);
    const objects = (JSON.parse(out) as { items: JsonObject[] }).items.filter((one) =>
      ["Namespace", "ServiceAccount", "ConfigMap", "Deployment", "ResourceQuota", "NetworkPolicy"].includes(
        stringAt(one, "kind") ?? "",
      ),
    );
    expect(objects.filter((one) => one["kind"] === "NetworkPolicy")).toHaveLength(1);
    const quota = objects.filter((one) => one["kind"] === "ResourceQuota");
    expect(quota).toHaveLength(1);
    await cluster().apply(...objects.filter((one) => !quota.includes(one)));
    const refusal = async () => {
      const sets = await cluster().call("GET", "/apis/apps/v1/namespaces/usher-system/replicasets");
      const conditions = listAt(sets, "items").flatMap((one) => listAt(one, "status", "conditions"));
      return conditions.map((one) => stringAt(one, "message") ?? "").join();
    };
    await eventually("the refusal", async () => (await refusal()).includes("insufficient quota"));
    expect(listAt(await cluster().call("GET", PODS), "items")).toEqual([]);
    await cluster().apply(...quota);
    // Controllers back off, so the refused pods are recreated.
    for (const name of ["usher", "usher-watchdog"])
      await cluster().call("PATCH", `/apis/apps/v1/namespaces/usher-system/deployments/${name}`, {
        spec: { template: { metadata: { annotations: { again: "1" } } } },
      });
    await eventually("the pods", async () => {
      const pods = listAt(await cluster().call("GET", PODS), "items");
      return (
        pods.length >= 3 &&
        pods.every(
          (one) => at(one, "spec", "priority") === 2_000_000_000 && at(one, "spec", "nodeName") === "cp",
        )
      );
    });
  });
});
