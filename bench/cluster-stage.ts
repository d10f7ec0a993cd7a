// The stage with a crowded control plane on it, filled when the first part asks for it.
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "../src/core/json.ts";
import { type Cluster, startCluster } from "../test/cluster/cluster.ts";
import { type Child, startServer } from "./child.ts";
import { CROWD, crowdNamespace, crowdNode } from "./cluster-crowd.ts";
import { installKinds } from "./cluster-install.ts";
import { inParallel } from "./cluster-parallel.ts";
import { podPlace } from "./cluster-pod-place.ts";
import { NAMESPACE_OBJECT, policy } from "./policies.ts";
import { Stage, USHER } from "./stage.ts";

/** How usher comes to the cluster. */
export const PLACES = ["in a pod", "by a kubeconfig"] as const;
export type Place = (typeof PLACES)[number];

const POLICIES = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies";
const HANDS = 16;
/** The API server goes on compacting and caching what it was just given. */
const SETTLE_MS = 3_000;

export class ClusterStage extends Stage {
  #crowd: Promise<Cluster> | undefined;

  /** A cluster of the size that the figures are promised for. Nothing runs in it: no controller, no kubelet disturbs. */
  crowd(): Promise<Cluster> {
    this.#crowd ??= this.#fill();
    return this.#crowd;
  }

  /** usher on the crowd, as a clone runs it. With `preload` that is run in its process before anything else. */
  async startFollower(place: Place, preload?: string): Promise<Child> {
    const cluster = await this.crowd();
    const ports = ["--port", "0", "--ops-port", "0", "--drain-seconds", "0", "-o", "json"];
    const variables = place === "in a pod" ? await podPlace(cluster, this.scratch) : [];
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
    const [crowd] = await Promise.allSettled([this.#crowd]);
    if (crowd.status === "fulfilled") await crowd.value?.stop();
    await super.close();
  }

  async #fill(): Promise<Cluster> {
    const { policies, nodes, namespaces } = CROWD;
    this.say(
      `starting a control plane with ${policies} policies, ${nodes} nodes, ${namespaces} namespaces, about a minute …`,
    );
    const cluster = await startCluster({ without: ["kube-controller-manager", "kube-scheduler", "kwok"] });
    try {
      await installKinds(cluster);
      const make = (path: string, count: number, object: (i: number) => JsonObject) =>
        inParallel(count, HANDS, async (i) => void (await cluster.call("POST", path, object(i))));
      await cluster.call("POST", "/api/v1/namespaces", NAMESPACE_OBJECT);
      await make(POLICIES, policies, policy);
      await make("/api/v1/nodes", nodes, crowdNode);
      await make("/api/v1/namespaces", namespaces, crowdNamespace);
      await sleep(SETTLE_MS);
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }
}
