// The stage with a crowded control plane on it, filled when the first part asks for it.
import { setTimeout as sleep } from "node:timers/promises";
import type { JsonObject } from "../src/core/json.ts";
import { type Cluster, startCluster } from "../test/cluster/cluster.ts";
import { type Child, startServer } from "./child.ts";
import { installKinds } from "./cluster-install.ts";
import { nodeObject } from "./cluster-node.ts";
import { inParallel } from "./cluster-parallel.ts";
import { NAMESPACE_OBJECT, policy } from "./policies.ts";
import { MAIN, type Served, Stage, servedAs, USHER } from "./stage.ts";

export const CROWD = { policies: 1_000, nodes: 5_000, namespaces: 10_000 } as const;

const POLICIES = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies";
const HANDS = 16;
/** The API server goes on compacting and caching what it was just given. */
const SETTLE_MS = 3_000;

export class ClusterStage extends Stage {
  #crowd: Promise<Cluster> | undefined;
  #usher: Promise<Served> | undefined;

  /** A cluster of the size that the figures are promised for. Nothing runs in it: no controller, no kubelet disturbs. */
  crowd(): Promise<Cluster> {
    this.#crowd ??= this.#fill();
    return this.#crowd;
  }

  /** usher that follows the crowd; always the same process. */
  follower(): Promise<Served> {
    this.#usher ??= this.startFollower().then((child) => servedAs(this.scratch, "follower", child));
    return this.#usher;
  }

  /** One more usher on the crowd, from the source, as a clone runs it. With `preload` that is run in its process before anything else. */
  async startFollower(preload?: string): Promise<Child> {
    const kubeconfig = await (await this.crowd()).kubeconfig();
    const ports = ["--port", "0", "--ops-port", "0", "--drain-seconds", "0"];
    const args = ["serve", "--kubeconfig", kubeconfig, ...ports, "-o", "json"];
    return preload === undefined
      ? startServer(USHER, args)
      : startServer(process.execPath, ["--import", preload, MAIN, ...args]);
  }

  override async close(): Promise<void> {
    const [usher, crowd] = await Promise.allSettled([this.#usher, this.#crowd]);
    if (usher.status === "fulfilled") await usher.value?.stop();
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
      await make("/api/v1/nodes", nodes, nodeObject);
      await make("/api/v1/namespaces", namespaces, namespaceObject);
      await sleep(SETTLE_MS);
      return cluster;
    } catch (error) {
      await cluster.stop();
      throw error;
    }
  }
}

function namespaceObject(i: number): JsonObject {
  const labels = { environment: i % 2 === 0 ? "prod" : "test", team: `team-${i % 100}` };
  return { apiVersion: "v1", kind: "Namespace", metadata: { name: `tenant-${i}`, labels } };
}
