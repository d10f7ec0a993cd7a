import { expect, test } from "vitest";
import { createResources } from "../../src/cluster/client/discovery.ts";
import { createNeeds } from "../../src/cluster/source/fetch-needs.ts";
import type { Fact, Need } from "../../src/core/decision/need.ts";
import type { Read } from "../../src/core/module/module.ts";
import { moduleThat } from "../builders/module.ts";
import type { ClusterAccess } from "../cluster/access/access.ts";
import { describeCluster, testNamespace } from "../cluster/describe.ts";
import { clientOf } from "./fixtures/client.ts";

/** A module that reads a kind that this cluster does not serve: its path is known without discovery. */
const GHOSTS: Read = {
  resource: "ghosts",
  group: "usher.dev",
  version: "v1",
  kind: "Ghost",
  scope: "Cluster",
  keep: [],
};

async function factsOf(
  cluster: ClusterAccess,
  needs: readonly Need[],
  user?: string,
): Promise<readonly Fact[]> {
  const client = await clientOf(cluster, user);
  const resources = createResources(client, [{ ...moduleThat("tiny", {}), reads: [GHOSTS] }]);
  const over = new AbortController();
  try {
    const fetch = createNeeds(client, resources);
    return await fetch(needs, { remaining: () => 20_000, signal: over.signal });
  } finally {
    client.close();
  }
}

describeCluster("needs", (cluster) => {
  const namespace = testNamespace(cluster);
  const get = (resource: string, name: string, where?: string): Need => ({
    get: { resource, name, ...(where === undefined ? {} : { namespace: where }) },
    live: true,
  });

  test("distinguishes a missing object, an API that is not served, and a forbidden one", async () => {
    const [found, absent, nowhere, noApi, noDiscovery] = await factsOf(cluster(), [
      get("namespaces", namespace()),
      get("configmaps", "anyone", namespace()),
      get("configmaps", "anyone", "no-such-namespace"),
      get("ghosts.usher.dev", "casper"),
      get("phantoms.usher.dev", "casper"),
    ]);
    expect(found).toMatchObject({ found: { kind: "Namespace", metadata: { name: namespace() } } });
    expect(JSON.stringify(found)).not.toContain("managedFields");
    expect(absent).toEqual({ absent: "NotFound" });
    expect(nowhere).toEqual({ absent: "NotFound" });
    expect(noApi).toEqual({ absent: "NotServed" });
    expect(noDiscovery).toEqual({ absent: "NotServed" });
    const [refused] = await factsOf(cluster(), [get("configmaps", "anyone", namespace())], "anyone");
    expect(refused).toMatchObject({
      failed: expect.stringContaining('User "anyone" cannot get'),
      status: 403,
      reason: "Forbidden",
    });
  });

  test("lists in pages, complete or truncated by the limit", async () => {
    const path = `/api/v1/namespaces/${namespace()}/configmaps`;
    const labels = { listed: "yes" };
    await Promise.all(
      Array.from({ length: 130 }, (_, i) =>
        cluster().call("POST", path, { metadata: { name: `c${i}`, labels } }),
      ),
    );
    const list = { resource: "configmaps", namespace: namespace(), labelSelector: "listed=yes" };
    const [whole, cut] = await factsOf(cluster(), [
      { list, limit: 500, share: 1 },
      { list, limit: 7, share: 0.5 },
    ]);
    expect(whole).toMatchObject({ complete: true, found: { length: 130, 0: { kind: "ConfigMap" } } });
    expect(cut).toMatchObject({ complete: false, found: { length: 7 } });
  });

  test("reviews access", async () => {
    const resourceAttributes = { verb: "delete", resource: "nodes" };
    const facts = await factsOf(cluster(), [
      { access: { user: "root", groups: ["system:masters"], resourceAttributes } },
      { access: { user: "anyone", resourceAttributes } },
    ]);
    expect(facts).toMatchObject([{ found: { allowed: true } }, { found: { allowed: false } }]);
  });
});
