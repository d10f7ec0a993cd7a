// An installation of the chart whose replicas are containers of the image, in its own cluster.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { at } from "../../src/core/json.ts";
import { eventually } from "../cluster/access/wait.ts";
import { ensureTool } from "../cluster/binaries.ts";
import { describeOwnCluster } from "../cluster/describe.ts";
import { RUN_LABEL } from "../cluster/runner/label.ts";
import { imageForCluster } from "../container/image.ts";
import { imageUnavailable } from "../container/programs.ts";
import { CHART, Helm, valuesFlag } from "../e2e/fixtures/helm.ts";
import { isPlaced, POLICIES, placingPolicy } from "../e2e/fixtures/placed-pods.ts";

const DEPLOYMENT = "/apis/apps/v1/namespaces/usher-system/deployments/usher";

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
        // It has ended in the meantime.
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
  const home = mkdtempSync(join(tmpdir(), "usher-helm-"));
  afterAll(() => rmSync(home, { recursive: true, force: true }));
  afterAll(() => root !== "" && rmSync(dirname(root), { recursive: true, force: true }));

  describeOwnCluster("an installation of the chart", options, (cluster) => {
    test("serves reviews", async () => {
      await cluster().createNode("n1");
      await cluster().createNode("n2", { labels: { pool: "etcd" } });
      const helm = new Helm(await ensureTool("helm"), home);
      const values = valuesFlag({
        image: { registry: "registry.example", repository: "team/usher", tag: "test" },
        podLabels: { [RUN_LABEL]: "true" },
      });
      const where = ["--kubeconfig", await cluster().kubeconfig(), "--namespace=usher-system"];
      const install = ["install", "usher", CHART, "--create-namespace", "--wait", "--timeout=200s"];
      const installed = await helm.run(...install, ...values, ...where);
      expect(installed, installed.err).toMatchObject({ code: 0 });
      expect(at(await cluster().call("GET", DEPLOYMENT), "status", "readyReplicas")).toBe(2);
      expect(servingUsers().filter((user) => user === "65532").length).toBeGreaterThanOrEqual(2);
      await cluster().call("POST", POLICIES, placingPolicy());
      await eventually("a placed pod", () => isPlaced(cluster()));
    }, 300_000);
  });
});
