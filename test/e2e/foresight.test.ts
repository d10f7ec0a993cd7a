import { randomUUID } from "node:crypto";
import { join } from "node:path";
import { beforeAll, expect, test } from "vitest";
import { at, listAt, stringAt } from "../../src/core/json.ts";
import { folder, usher } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeCluster, testNamespace } from "../cluster/describe.ts";

/** Policies from files, so that no other test of the shared cluster sees them; everything else from the cluster. */
describeCluster("diff, what-if and explain on a live cluster", (cluster) => {
  const namespace = testNamespace(cluster);
  const label = `foresight-${randomUUID().slice(0, 8)}`;

  const policy = (pool: string) =>
    JSON.stringify({
      apiVersion: "kupid.gardener.cloud/v1alpha1",
      kind: "ClusterPodSchedulingPolicy",
      metadata: { name: label },
      spec: {
        namespaceSelector: { matchLabels: { foresight: label } },
        podSelector: {},
        nodeSelector: { pool },
      },
    });

  const deployment = (name: string, image = "web:1") => ({
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name, namespace: namespace() },
    spec: {
      replicas: 0,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: "web", image }] } },
    },
  });

  beforeAll(async () => {
    await cluster().call("PATCH", `/api/v1/namespaces/${namespace()}`, {
      metadata: { labels: { foresight: label } },
    });
    await cluster().call("POST", `/apis/apps/v1/namespaces/${namespace()}/deployments`, deployment("web"));
  });

  /** Runs a command with policies from files and the cluster. */
  const run = async (
    files: Readonly<Record<string, string>>,
    args: (directory: string) => readonly string[],
  ) => {
    const directory = folder({ "policies/policy.json": policy("first"), ...files });
    const live = [
      "--source",
      join(directory, "policies"),
      "--cluster",
      "--kubeconfig",
      await cluster().kubeconfig(),
    ];
    return usher([...args(directory), ...live]);
  };

  /** Every Deployment of the namespace, with its generation and field managers: nothing may be written. */
  const versions = async () => {
    const list = await cluster().call("GET", `/apis/apps/v1/namespaces/${namespace()}/deployments`);
    return listAt(list, "items").map((one) => [
      stringAt(one, "metadata", "name"),
      at(one, "metadata", "generation"),
      // The controller writes the status, and its revision, at its own pace.
      listAt(one, "metadata", "managedFields")
        .flatMap((entry) => stringAt(entry, "manager") ?? [])
        .filter((manager) => manager !== "kube-controller-manager"),
    ]);
  };

  test("diff evaluates stored workloads with the old and the new policy, and writes nothing", async () => {
    const before = await versions();
    const { code, out, err } = await run({ "edit.json": policy("second") }, (directory) => [
      "diff",
      "-f",
      join(directory, "edit.json"),
      "-n",
      namespace(),
    ]);
    expect(err).not.toContain("partial");
    expect(out).toContain(
      `If ClusterPodSchedulingPolicy ${label} is changed:\n  1 of 1 workload differs: 1 changed\n`,
    );
    expect(out).toMatch(/\+ nodeSelector pool=second/);
    expect(code).toBe(1);
    expect(await versions()).toEqual(before);
  });

  test("what-if sends a new workload as a dry run, and other admission plugins may refuse it, by name", async () => {
    const quota = {
      apiVersion: "v1",
      kind: "ResourceQuota",
      metadata: { name: "few" },
      spec: { hard: { "count/deployments.apps": "1" } },
    };
    const path = `/api/v1/namespaces/${namespace()}/resourcequotas`;
    const admitted = await run({ "new.json": JSON.stringify(deployment("new")) }, (directory) => [
      "what-if",
      join(directory, "new.json"),
      "-n",
      namespace(),
      "-o",
      "json",
    ]);
    expect(JSON.parse(admitted.out)).toMatchObject({
      workloads: [{ object: { name: "new" }, effect: "new", after: { refused: false } }],
      serverDryRun: [{ name: `Deployment ${namespace()}/new`, result: "admitted", changes: [] }],
    });
    await cluster().call("POST", path, quota);
    await eventually("the quota to take effect", async () => {
      const stored = await cluster().call("GET", `${path}/few`);
      return stringAt(stored, "status", "used", "count/deployments.apps") === "1";
    });
    const refused = await run({ "new.json": JSON.stringify(deployment("new")) }, (directory) => [
      "what-if",
      join(directory, "new.json"),
      "-n",
      namespace(),
    ]);
    expect(refused.out).toMatch(/Deployment \S+\/new +refused +.*exceeded quota: few.* +ResourceQuota few/);
    expect(refused.code).toBe(1);
    const never = await run({ "new.json": JSON.stringify(deployment("new")) }, (directory) => [
      "what-if",
      join(directory, "new.json"),
      "-n",
      namespace(),
      "--server-dry-run=never",
    ]);
    expect(never.out).not.toContain("SERVER DRY RUN");
    expect((await versions()).map(([name]) => name)).toEqual(["web"]);
  });

  test("explain names the policy, and where the pods of a stored workload may run", async () => {
    const { code, out } = await run({}, () => ["explain", "deployment/web", "-n", namespace()]);
    expect(out).toContain(`Deployment ${namespace()}/web`);
    expect(out).toMatch(new RegExp(`${label} +applies +`));
    expect(out).toContain("+ nodeSelector pool=first");
    expect(code).toBe(0);
  });

  test("a user without list permission gets an error and exit code 3", async () => {
    const directory = folder({ "policies/policy.json": policy("first"), "edit.json": policy("second") });
    const { code, out, err } = await usher([
      "diff",
      "-f",
      join(directory, "edit.json"),
      "--source",
      join(directory, "policies"),
      "--cluster",
      "--kubeconfig",
      await cluster().kubeconfig("nobody-in-particular"),
      "--request-timeout",
      "5",
    ]);
    expect(out).toBe("");
    expect(err).toMatch(/nobody-in-particular|not allowed|forbidden/i);
    expect(code).toBe(3);
  });
});
