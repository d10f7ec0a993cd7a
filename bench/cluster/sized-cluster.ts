// A cluster that grows: nodes, and proportionally everything that usher reads or is called for.
import type { JsonObject } from "../../src/core/json.ts";
import type { Cluster } from "../../test/cluster/cluster.ts";
import { podObject } from "../fixtures/pod.ts";
import { policy, roleOf } from "../fixtures/policies.ts";
import { POLICIES_PATH } from "./cluster-servers.ts";
import { largeClusterNamespace, largeClusterNode, nodeName } from "./large-cluster.ts";
import { inParallel } from "./parallel.ts";

/** Per node. 5,000 nodes are then the large cluster of the other parts, with pods. */
export const PER_NODE = { namespaces: 2, policies: 1 / 5, deployments: 1, pods: 10 };

const APP = "/apis/apps/v1";
const API_CONNECTIONS = 16;

/** Adds the objects between a cluster of `from` and one of `to` nodes. */
export async function grow(cluster: Cluster, from: number, to: number): Promise<void> {
  const make = (path: (i: number) => string, each: number, object: (i: number) => JsonObject) =>
    inParallel((to - from) * each, API_CONNECTIONS, async (i) => {
      const number = from * each + i;
      await cluster.call("POST", path(number), object(number));
    });
  const tenant = (i: number) => `tenant-${i % (to * PER_NODE.namespaces)}`;
  await make(() => POLICIES_PATH, PER_NODE.policies, policy);
  await make(() => "/api/v1/nodes", 1, largeClusterNode);
  await make(() => "/api/v1/namespaces", PER_NODE.namespaces, largeClusterNamespace);
  await make((i) => `${APP}/namespaces/${tenant(i)}/deployments`, PER_NODE.deployments, deployment);
  await make(
    (i) => `/api/v1/namespaces/${tenant(i)}/pods`,
    PER_NODE.pods,
    (i) => pod(i, nodeName(i % to)),
  );
}

function pod(i: number, node: string): JsonObject {
  const { spec } = podObject(i, roleOf(i)) as { spec: JsonObject };
  const labels = { app: "etcd", role: roleOf(i) };
  return { metadata: { name: `pod-${i}`, labels }, spec: { ...plainSpec(spec), nodeName: node } };
}

function deployment(i: number): JsonObject {
  const labels = { app: "etcd", role: roleOf(i) };
  const { spec } = podObject(i, roleOf(i)) as { spec: JsonObject };
  return {
    metadata: { name: `etcd-${i}`, labels },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: plainSpec(spec) } },
  };
}

/** Without fields that only a running cluster fills in: their objects do not exist here. */
function plainSpec({ containers }: JsonObject): JsonObject {
  const bare = (containers as readonly JsonObject[]).map(({ name, image, resources, env }) =>
    JSON.parse(JSON.stringify({ name, image, resources, env })),
  );
  return { containers: bare as never };
}
