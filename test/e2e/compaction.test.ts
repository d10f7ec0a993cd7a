import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { greeter } from "../conformance/modules.ts";
import { FaultProxy } from "./fault-proxy.ts";
import { installKinds, openLive, viewEqualsList } from "./live-source.ts";

// Every version is compacted some seconds after its creation, and no cache is in front of the store: expiry, which
// takes five minutes elsewhere, happens at once.
const FORGETFUL = ["--feature-gates=WatchList=false", "--etcd-compaction-interval=1s", "--watch-cache=false"];

describeOwnCluster(
  "an informer cache of an API server that compacts old versions",
  {
    without: ["kube-controller-manager", "kube-scheduler", "kwok"],
    flags: { "kube-apiserver": FORGETFUL },
  },
  (cluster) => {
    const configMaps = "/api/v1/namespaces/default/configmaps";
    const create = (name: string): Promise<unknown> =>
      cluster().call("POST", configMaps, { metadata: { name, labels: { app: "many" } } });
    let proxy: FaultProxy;

    beforeAll(async () => {
      await installKinds(cluster(), [greeter]);
      for (let i = 0; i < 30; i++) await create(`c-${String(i).padStart(2, "0")}`);
      proxy = new FaultProxy(cluster().server);
      await proxy.listen();
    });
    afterAll(() => proxy.close());

    /** Compaction uses the newest version of a while ago, so something has to be written in between. */
    async function keepWriting(until: () => boolean): Promise<void> {
      for (let i = 0; !until(); i++) {
        await create(`w-${i}`);
        await sleep(200);
        await cluster().call("DELETE", `${configMaps}/w-${i}`);
      }
    }

    test("a list whose continue token expired starts again, as one snapshot", async () => {
      proxy.delay(400);
      await using live = await openLive(cluster(), [greeter], {
        address: proxy.address,
        limits: { pageLimit: 2 },
      });
      const status = () => live.source.cache.status().find(({ resource }) => resource === "configmaps");
      let expired = false;
      const writing = keepWriting(() => expired);
      await eventually("the token to expire", () => status()?.lastError?.startsWith("410 "));
      expired = true;
      await writing;
      await cluster().call("DELETE", `${configMaps}/c-00`);
      proxy.delay(0);
      await live.source.cache.waitForSync();
      await viewEqualsList(cluster(), live.source);
      expect(live.source.assembly.view.get("configmaps", "default", "c-00")).toBeUndefined();
    });

    test("a watch from a compacted version lists again, and drops deleted objects", async () => {
      await using live = await openLive(cluster(), [greeter], { address: proxy.address });
      await live.source.cache.waitForSync();
      await viewEqualsList(cluster(), live.source);
      const status = () => live.source.cache.status().find(({ resource }) => resource === "configmaps");
      proxy.refuse(true);
      proxy.reset();
      await cluster().call("DELETE", `${configMaps}/c-01`);
      const until = Date.now() + 5_000;
      await keepWriting(() => Date.now() > until);
      expect(live.source.assembly.view.get("configmaps", "default", "c-01")).toBeDefined();
      proxy.refuse(false);
      await viewEqualsList(cluster(), live.source);
      expect(live.source.assembly.view.get("configmaps", "default", "c-01")).toBeUndefined();
      expect(status()?.relists).toBeGreaterThan(0);
    });
  },
);
