// The servers, and a control plane with many objects, filled when the first part needs it.
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "../../src/core/json.ts";
import { type Cluster, startCluster } from "../../test/cluster/cluster.ts";
import { NAMESPACE_OBJECT, policy } from "../fixtures/policies.ts";
import { type Child, startServer } from "../servers/child-process.ts";
import { Servers, USHER } from "../servers/servers.ts";
import { inClusterEnvironment } from "./in-cluster-environment.ts";
import { installKinds } from "./install.ts";
import { LARGE_CLUSTER, largeClusterNamespace, largeClusterNode } from "./large-cluster.ts";
import { inParallel } from "./parallel.ts";

/** How usher comes to the cluster. */
export const PLACES = ["in a pod", "by a kubeconfig"] as const;
export type Place = (typeof PLACES)[number];

export const POLICIES_PATH = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies";
const CONNECTIONS = 16;
/** The API server keeps compacting and caching the new objects for a while. */
const IDLE_MS = 3_000;

export class ClusterServers extends Servers {
  #large: Promise<Cluster> | undefined;

  /** A cluster of the size that the figures are promised for. Nothing runs in it: no controller, no kubelet disturbs. */
  large(): Promise<Cluster> {
    this.#large ??= this.#fill();
    return this.#large;
  }

  /** usher on the large cluster, as run from a clone. `preload` runs in its process before anything else. */
  async startFollower(place: Place, preload?: string): Promise<Child> {
    const cluster = await this.large();
    const ports = ["--port", "0", "--ops-port", "0", "--drain-seconds", "0", "-o", "json"];
    const variables = place === "in a pod" ? await inClusterEnvironment(cluster, this.scratch) : [];
    const where = place === "in a pod" ? [] : ["--kubeconfig", await cluster.kubeconfig()];
    // Node's own flag reaches the process that bin/usher becomes.
    const watched = preload === undefined ? [] : [`NODE_OPTIONS=--import=${preload}`];
    return startServer("env", [
      "-u",
      "KUBECONFIG",
      ...variables,
      ...watched,
      USHER,
      "serve",
      ...where,
      ...ports,
    ]);
  }

  override async close(): Promise<void> {
    const [large] = await Promise.allSettled([this.#large]);
    if (large.status === "fulfilled") await large.value?.stop();
    await super.close();
  }

  async #fill(): Promise<Cluster> {
    const { policies, nodes, namespaces } = LARGE_CLUSTER;
    this.say(
      `starting a control plane with ${policies} policies, ${nodes} nodes, ${namespaces} namespaces, about a minute …`,
    );
    const cluster = await startCluster({ without: ["kube-controller-manager", "kube-scheduler", "kwok"] });
    try {
      await installKinds(cluster);
      const make = (path: string, count: number, object: (i: number) => JsonObject) =>
        inParallel(count, CONNECTIONS, async (i) => void (await cluster.call("POST", path, object(i))));
      await cluster.call("POST", "/api/v1/namespaces", NAMESPACE_OBJECT);
      await make(POLICIES_PATH, policies, policy);
      await make("/api/v1/nodes", nodes, largeClusterNode);
      await make("/api/v1/namespaces", namespaces, largeClusterNamespace);
      await sleep(IDLE_MS);
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }
}
