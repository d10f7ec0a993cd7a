// The ways to install usher, as an administrator would: each with the same settings, and with an image per version.
import { expect } from "vitest";
import type { JsonObject } from "../../src/core/json.ts";
import { program } from "../cli/usher.ts";
import { ensureTool } from "../cluster/binaries.ts";
import type { Cluster } from "../cluster/cluster.ts";
import { RUN_LABEL } from "../cluster/runner/label.ts";
import { CHART, Helm, valuesFlag } from "../e2e/fixtures/helm.ts";
import { configured, install } from "../e2e/fixtures/install.ts";

/** Use only within a test: the files that it writes are removed after the test. */
export interface Way {
  readonly name: string;
  install(cluster: Cluster, configuration: JsonObject): Promise<void>;
  /** Changes to another version, which replaces every replica. */
  upgrade(cluster: Cluster): Promise<void>;
  rollback(cluster: Cluster): Promise<void>;
  uninstall(cluster: Cluster): Promise<void>;
}

const FIRST = "0.1.0";
const SECOND = "0.1.1";

const byCommand: Way = {
  name: "usher install",
  async install(cluster, configuration) {
    await install(cluster, "--image", `usher:${FIRST}`, ...configured(configuration));
  },
  async upgrade(cluster) {
    await install(cluster, "--image", `usher:${SECOND}`);
  },
  async rollback(cluster) {
    await install(cluster, "--image", `usher:${FIRST}`);
  },
  async uninstall(cluster) {
    const ran = await program(["uninstall", "--kubeconfig", await cluster.kubeconfig()]);
    expect(ran, ran.err).toMatchObject({ code: 0 });
  },
};

async function helm(cluster: Cluster, ...args: readonly string[]): Promise<void> {
  const place = ["-n", "usher-system", "--kubeconfig", await cluster.kubeconfig()];
  const tool = new Helm(await ensureTool("helm"), cluster.info.folder);
  const ran = await tool.run(...args, "--wait", "--timeout", "180s", ...place);
  expect(ran, ran.err).toMatchObject({ code: 0 });
}

const byChart: Way = {
  name: "the chart",
  async install(cluster, configuration) {
    const values = { podLabels: { [RUN_LABEL]: "true" }, image: { tag: FIRST }, configuration };
    await helm(cluster, "install", "usher", CHART, "--create-namespace", ...valuesFlag(values));
  },
  async upgrade(cluster) {
    await helm(cluster, "upgrade", "usher", CHART, "--reuse-values", "--set", `image.tag=${SECOND}`);
  },
  async rollback(cluster) {
    await helm(cluster, "rollback", "usher", "1");
  },
  async uninstall(cluster) {
    await helm(cluster, "uninstall", "usher");
  },
};

export const WAYS: readonly Way[] = [byCommand, byChart];
