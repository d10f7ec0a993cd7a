import { randomUUID } from "node:crypto";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { openCluster } from "../../src/cluster/source/cluster-source.ts";
import { composeSources, type Owns, shareOf } from "../../src/cluster/source/composite-source.ts";
import { Gates } from "../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import { SILENT } from "../../src/core/log.ts";
import { Assembly } from "../../src/core/module/assembly.ts";
import { openFiles } from "../../src/files/source/file-source.ts";
import { requestFor } from "../builders/request.ts";
import { post, readyOf, serving } from "../cli/serving.ts";
import { ROOT } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeCluster, testNamespace } from "../cluster/describe.ts";
import { GREETINGS, GROUP, greeter } from "../conformance/modules.ts";
import { servingWith } from "../support/modules/program.ts";
import { clientOf } from "./live-source.ts";

describeCluster("policies from files, objects from a cluster", (cluster) => {
  const namespace = testNamespace(cluster);

  test("form one view, and needs are read from the source of their objects", async () => {
    const directory = await mkdtemp(join(tmpdir(), "usher-composed-"));
    const name = `t-${randomUUID().slice(0, 8)}`;
    const policy = {
      apiVersion: `${GROUP}/v1`,
      kind: "Greeting",
      metadata: { name },
      spec: { word: "hello" },
    };
    await writeFile(join(directory, "policy.json"), JSON.stringify(policy));
    // An object of the files for which the cluster takes precedence.
    const stray = {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: `${name}-stray`, namespace: namespace() },
    };
    await writeFile(join(directory, "stray.json"), JSON.stringify(stray));
    const path = `/api/v1/namespaces/${namespace()}/configmaps`;
    await cluster().call("POST", path, { metadata: { name, labels: { app: name } }, data: { value: "1" } });

    const policies: Owns = (resource) => resource === GREETINGS;
    const others: Owns = (resource) => !policies(resource);
    const assembly = new Assembly([greeter], DEFAULT_INSTALLATION, new Gates([]));
    const client = await clientOf(cluster(), cluster().server);
    const files = await openFiles({
      directory,
      assembly: shareOf(assembly, policies),
      report: () => undefined,
      watch: false,
    });
    // The cluster does not serve this kind, and need not: it is not asked for it.
    const live = openCluster({ client, assembly: shareOf(assembly, others), log: SILENT, owns: others });
    const source = composeSources(assembly, [
      { source: files, owns: policies },
      { source: live, owns: others },
    ]);
    await live.cache.waitForSync();
    expect(source.ready).toBe(true);
    const { view } = source.assembly;
    expect([...view.list(GREETINGS)]).toMatchObject([{ metadata: { name } }]);
    expect([...view.lookup("configmaps", "app", name)]).toMatchObject([{ metadata: { name } }]);
    expect(view.get("configmaps", namespace(), `${name}-stray`)).toBeUndefined();
    const facts = await source.fetch(
      [
        { get: { resource: "configmaps", namespace: namespace(), name } },
        { get: { resource: GREETINGS, name } },
      ],
      { remaining: () => 10_000, signal: new AbortController().signal },
    );
    expect(facts).toMatchObject([
      { found: { data: { value: "1" } } },
      { found: { spec: { word: "hello" } } },
    ]);
    await source.stop();
    client.close();
    await rm(directory, { recursive: true });
  });

  test("usher serve --source --cluster decides by a policy of the files and a namespace of the cluster", async () => {
    const directory = await mkdtemp(join(tmpdir(), "usher-composed-"));
    const policy = (pool: string) =>
      writeFile(
        join(directory, "policies/policy.json"),
        JSON.stringify({
          apiVersion: "kupid.gardener.cloud/v1alpha1",
          kind: "ClusterPodSchedulingPolicy",
          metadata: { name: "composed" },
          spec: {
            namespaceSelector: { matchLabels: { composed: "yes" } },
            podSelector: {},
            nodeSelector: { pool },
          },
        }),
      );
    // Conflicts with the cluster's namespace, which takes precedence.
    const stray = { apiVersion: "v1", kind: "Namespace", metadata: { name: namespace(), labels: {} } };
    const live = `/api/v1/namespaces/${namespace()}`;
    await cluster().call("PATCH", live, { metadata: { labels: { composed: "yes" } } });

    // As documented: the policies in a folder, the cluster by a context.
    const document = await readFile(join(ROOT, "docs/serving.md"), "utf8");
    const [, line = ""] = /^```sh cluster\nusher serve (.*)$/m.exec(document) ?? [];
    expect(line).toContain("--source policies/ --cluster --context staging");
    const kubeconfig = join(directory, "kubeconfig");
    const config = JSON.parse(await readFile(await cluster().kubeconfig(), "utf8"));
    config.contexts[0].name = "staging";
    config["current-context"] = "another";
    await writeFile(kubeconfig, JSON.stringify(config));
    await mkdir(join(directory, "policies"));
    const args = line.split(" ").map((word) => (word === "policies/" ? join(directory, word) : word));
    await policy("first");
    await writeFile(join(directory, "policies/namespace.json"), JSON.stringify(stray));
    const usher = await serving([...args, "--kubeconfig", kubeconfig, "--drain-seconds", "0", "-o", "json"]);
    const { webhook, ca = "" } = readyOf(usher);
    const pool = async (): Promise<string | undefined> => {
      const pod = { apiVersion: "v1", kind: "Pod", metadata: { name: "p", namespace: namespace() } };
      const spec = { containers: [{ name: "c", image: "any" }] };
      const request = { ...requestFor({ ...pod, spec }) };
      const review = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request };
      const { body } = await post(`${webhook}/mutate`, ca, review);
      const { response } = JSON.parse(body) as { response: { patch?: string } };
      return /"pool":"(\w+)"/.exec(Buffer.from(response.patch ?? "", "base64").toString())?.[1];
    };
    expect(await usher.said(/not used/)).toContain("1 namespace not used: only policies are read from files");
    expect(await usher.said(/ from .* and https:/)).toMatch(/1 policy, \d+ namespaces?.* from .* and https:/);
    expect(await pool()).toBe("first");
    // Both are watched.
    await policy("second");
    await eventually("the changed file", async () => (await pool()) === "second");
    await cluster().call("PATCH", live, { metadata: { labels: { composed: null } } });
    await eventually("the changed namespace", async () => (await pool()) === undefined);
    usher.child.kill("SIGTERM");
    expect((await usher.end).code).toBe(0);
    await rm(directory, { recursive: true });
  });

  test("a module gets its configuration from a file and its policies and nodes from the cluster", async () => {
    const group = "gatehouse.usher.dev";
    const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    const open = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
    await cluster().call("POST", crds, {
      metadata: { name: `gatehouses.${group}` },
      spec: {
        group,
        scope: "Cluster",
        names: { plural: "gatehouses", singular: "gatehouse", kind: "Gatehouse", listKind: "GatehouseList" },
        versions: [{ name: "v1alpha1", served: true, storage: true, schema: { openAPIV3Schema: open } }],
      },
    });
    onTestFinished(async () => void (await cluster().call("DELETE", `${crds}/gatehouses.${group}`)));
    const gatehouse = { apiVersion: `${group}/v1alpha1`, kind: "Gatehouse", metadata: { name: "live" } };
    await eventually("the custom resource", async () => {
      const spec = { closed: ["cp-0"] };
      await cluster().call("POST", `/apis/${group}/v1alpha1/gatehouses`, { ...gatehouse, spec });
      return true;
    });
    const directory = await mkdtemp(join(tmpdir(), "usher-composed-"));
    const configuration = { apiVersion: "v1", kind: "GatehouseConfig", closed: ["cp-0"] };
    await writeFile(join(directory, "gatehouse.json"), JSON.stringify(configuration));
    const kubeconfig = ["--kubeconfig", await cluster().kubeconfig()];
    const usher = await servingWith("gatehouse.ts", [
      "--source",
      directory,
      "--cluster",
      ...kubeconfig,
      "--drain-seconds",
      "0",
      "-o",
      "json",
    ]);
    expect(await usher.said(/ from .* and https:/)).toMatch(/ 1 policy, .*1 gatehouseconfig/);
    const { webhook, ca = "" } = readyOf(usher);
    const spec = { nodeName: "cp-0", containers: [{ name: "c", image: "any" }] };
    const request = requestFor({ apiVersion: "v1", kind: "Pod", metadata: { name: "p" }, spec });
    const review = { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", request };
    const { body } = await post(`${webhook}/validate`, ca, review);
    expect(body).toContain("node cp-0 is closed by Gatehouse live and GatehouseConfig configuration");
    usher.child.kill("SIGTERM");
    expect((await usher.end).code).toBe(0);
    await rm(directory, { recursive: true });
  });
});
