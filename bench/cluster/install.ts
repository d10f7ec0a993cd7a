// usher in a cluster, as an administrator brings it there.
import type { ClusterAccess } from "../../test/cluster/access/access.ts";
import { eventually } from "../../test/cluster/access/wait.ts";
import type { Cluster } from "../../test/cluster/cluster.ts";
import { RUN_LABEL } from "../../test/cluster/runner/label.ts";
import { NAMESPACE_OBJECT, policy } from "../fixtures/policies.ts";
import { output } from "../servers/child-process.ts";
import { USHER } from "../servers/servers.ts";
import { ARMS, isPlaced, POLICIES, podFor, podsPath } from "./pod.ts";

const INSTALL_WITHIN_MS = 4 * 60_000;

/** Nodes, usher and policies that select the pods of `podFor`, all in force. */
export async function installForPods(cluster: Cluster): Promise<void> {
  for (const name of ["bench-0", "bench-1"]) await cluster.createNode(name);
  await install(cluster, ["--pod-label", `${RUN_LABEL}=true`]);
  await cluster.apply(NAMESPACE_OBJECT, ...Array.from({ length: POLICIES }, (_, i) => policy(i)));
  await waitInForce(cluster);
}

/** The replicas follow by watch; until both know the policies a pod may bypass them, because the hook is fail-open. */
export async function waitInForce(cluster: ClusterAccess): Promise<void> {
  await eventually("the policies in force in all replicas", async () => {
    const asked = Array.from({ length: 20 }, (_, i) =>
      cluster.call("POST", `${podsPath(ARMS[0])}?dryRun=All`, podFor(i)),
    );
    return (await Promise.all(asked)).every(isPlaced);
  });
}

/** Replicas that really run. */
export async function installReplicas(
  cluster: ClusterAccess,
  replicas: number,
  ...args: readonly string[]
): Promise<void> {
  await install(cluster, ["--pod-label", `${RUN_LABEL}=true`, "--replicas", String(replicas), ...args]);
}

/** Only usher's kinds and other objects that it applies: for a cluster in which no pod runs. */
export async function installKinds(cluster: ClusterAccess): Promise<void> {
  await install(cluster, ["--no-wait"]);
}

async function install(cluster: ClusterAccess, args: readonly string[]): Promise<void> {
  const kubeconfig = await cluster.kubeconfig();
  await output(USHER, ["install", "--kubeconfig", kubeconfig, ...args], INSTALL_WITHIN_MS);
}
