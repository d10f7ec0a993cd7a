// usher in a cluster, as an administrator brings it there.
import type { ClusterAccess } from "../test/cluster/access/access.ts";
import { RUN_LABEL } from "../test/cluster/runner/label.ts";
import { output } from "./child.ts";
import { USHER } from "./stage.ts";

const INSTALL_WITHIN_MS = 4 * 60_000;

/** Installs usher and waits until its replicas really run and have registered their hook. */
export async function installUsher(cluster: ClusterAccess): Promise<void> {
  await install(cluster, ["--pod-label", `${RUN_LABEL}=true`]);
}

/** Only usher's kinds and what else it applies: for a cluster in which no pod runs. */
export async function installKinds(cluster: ClusterAccess): Promise<void> {
  await install(cluster, ["--no-wait"]);
}

async function install(cluster: ClusterAccess, args: readonly string[]): Promise<void> {
  const kubeconfig = await cluster.kubeconfig();
  await output(USHER, ["install", "--kubeconfig", kubeconfig, ...args], INSTALL_WITHIN_MS);
}
