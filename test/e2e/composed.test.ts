import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { composeSources, type Owns, shareOf } from "../../src/cluster/compose.ts";
import { SILENT } from "../../src/cluster/log.ts";
import { openCluster } from "../../src/cluster/source.ts";
import { Assembly } from "../../src/core/assembly.ts";
import { Gates } from "../../src/core/gates.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/installation.ts";
import { openFiles } from "../../src/files/source.ts";
import { describeCluster, testNamespace } from "../cluster/describe.ts";
import { GREETINGS, GROUP, greeter } from "../conformance/modules.ts";
import { clientOf } from "./live-source.ts";

describeCluster("policies from files, objects from a cluster", (cluster) => {
  const namespace = testNamespace(cluster);

  test("stand in one view, and needs go where their objects are", async () => {
    const directory = await mkdtemp(join(tmpdir(), "usher-composed-"));
    const name = `t-${randomUUID().slice(0, 8)}`;
    const policy = {
      apiVersion: `${GROUP}/v1`,
      kind: "Greeting",
      metadata: { name },
      spec: { word: "hello" },
    };
    await writeFile(join(directory, "policy.json"), JSON.stringify(policy));
    // An object of the files where the cluster's word counts.
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
    // The cluster has no such kind, and need not: it is not asked for it.
    const live = openCluster({ client, assembly: shareOf(assembly, others), log: SILENT, owns: others });
    const source = composeSources(assembly, [
      { source: files, owns: policies },
      { source: live, owns: others },
    ]);
    await live.live.synced();
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
});
