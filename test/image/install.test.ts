// An installation whose replicas are containers of the image, in a cluster of its own.
import { readdirSync, readFileSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { at } from "../../src/core/json.ts";
import { program } from "../cli/usher.ts";
import { eventually } from "../cluster/access/wait.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { imageForCluster } from "../container/image.ts";
import { imageUnavailable } from "../container/programs.ts";
import { install } from "../e2e/fixtures/install.ts";

const IMAGE = "registry.example/team/usher:test";
const DEPLOYMENT = "/apis/apps/v1/namespaces/usher-system/deployments/usher";
const POLICIES = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies";

/** Users of the processes that serve from an image. */
function servingUsers(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const command = readFileSync(`/proc/${pid}/cmdline`, "utf8");
        const [, user = ""] = /^Uid:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8")) ?? [];
        return command.startsWith("/usr/bin/node\0/usr/bin/usher\0serve\0") ? [user] : [];
      } catch {
        // It has ended meanwhile.
        return [];
      }
    });
}

describe.skipIf(imageUnavailable() !== "")("with the image", () => {
  let root = "";
  const options = async () => {
    const usher = await imageForCluster();
    root = usher.root;
    return { images: { usher } };
  };
  afterAll(() => root !== "" && rmSync(dirname(root), { recursive: true, force: true }));

  describeOwnCluster("an installation", options, (cluster) => {
    test("serves reviews, and goes when it is uninstalled", async () => {
      await cluster().createNode("n1");
      await cluster().createNode("n2", { labels: { pool: "etcd" } });
      await install(cluster(), "--image", IMAGE);
      expect(at(await cluster().call("GET", DEPLOYMENT), "status", "readyReplicas")).toBe(2);
      expect(servingUsers().filter((user) => user === "65532").length).toBeGreaterThanOrEqual(2);
      await cluster().call("POST", POLICIES, {
        apiVersion: "kupid.gardener.cloud/v1alpha1",
        kind: "ClusterPodSchedulingPolicy",
        metadata: { name: "etcd" },
        spec: {
          namespaceSelector: {},
          podSelector: { matchLabels: { role: "etcd" } },
          nodeSelector: { pool: "etcd" },
        },
      });
      const placed = await eventually("a placed pod", async () => {
        const pod = await cluster().call("POST", "/api/v1/namespaces/default/pods?dryRun=All", {
          metadata: { generateName: "p-", labels: { role: "etcd" } },
          spec: { containers: [{ name: "c", image: "any" }] },
        });
        return at(pod, "spec", "nodeSelector");
      });
      expect(placed).toEqual({ pool: "etcd" });
      const { code, err } = await program(["uninstall", "--kubeconfig", await cluster().kubeconfig()]);
      expect(`${code} ${err}`).toMatch(/^0 /);
    });
  });
});
