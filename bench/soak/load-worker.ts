// Steady mixed load on an installed usher: everything that it reviews or reconciles, at the same pace from the first quarter to the last.
import { setTimeout as sleep } from "node:timers/promises";
import { makeCertificate } from "../../src/admission/tls/certificate.ts";
import { type JsonObject, stringAt } from "../../src/core/json.ts";
import { serviceNames } from "../../src/core/registration/certificates.ts";
import type { ClusterAccess } from "../../test/cluster/access/access.ts";
import type { Identity } from "../../test/cluster/access/identity.ts";
import { ARMS, type Arm, isPlaced, POLICIES, podFor, podsPath } from "../cluster/pod.ts";
import { serveWorker } from "../cluster/worker-process.ts";
import { policy } from "../fixtures/policies.ts";
import { nodeName, TENANT, WORKLOADS, workloadsPath } from "./objects.ts";
import type { Seen } from "./quarter.ts";

export interface LoadOptions {
  readonly seconds: number;
}

/** The pace of each task; a turn that takes longer is followed by the next immediately. */
const PACE_MS = { pods: 240, workloads: 500, nodes: 1_000, namespaces: 2_000, policies: 1_500 } as const;
/** Enough of them for a p99, also on a machine that is slow to answer. */
const POD_CLIENTS = 4;
/** Namespaces take time to be deleted; at most this many exist. */
const KEPT_NAMESPACES = 3;
const NOW = { apiVersion: "v1", kind: "DeleteOptions", gracePeriodSeconds: 0 };
const SECRET = "/api/v1/namespaces/usher-system/secrets/usher-certificates";
const ALICE: Identity = { user: TENANT };

/** Continues from quarter to quarter, so that no name repeats. */
let turn = 0;

interface Counted {
  readonly reviewed: number[];
  readonly unreviewed: number[];
  readonly sent: Record<string, number>;
  readonly failed: string[];
}

/** A pod is created and deleted; only the creation is measured. */
async function pod(cluster: ClusterAccess, arm: Arm, i: number, times: number[]): Promise<void> {
  const started = performance.now();
  const created = await cluster.call("POST", podsPath(arm), podFor(i));
  times.push(performance.now() - started);
  if (isPlaced(created) !== (arm.name === "usher")) throw new Error("not placed");
  const name = stringAt(created, "metadata", "name");
  await cluster.call("DELETE", `${podsPath(arm)}/${name}`, NOW);
}

const [REVIEWED, , UNREVIEWED] = ARMS;

/** By the sort of request. */
const TURNS: Readonly<
  Record<keyof typeof PACE_MS, (cluster: ClusterAccess, i: number, seen: Counted) => Promise<unknown>>
> = {
  async pods(cluster, i, seen) {
    await pod(cluster, REVIEWED, i, seen.reviewed);
    await pod(cluster, UNREVIEWED, i, seen.unreviewed);
  },
  workloads: (cluster, i) =>
    cluster.call("PATCH", `${workloadsPath}/workload-${i % WORKLOADS}`, {
      spec: { template: { metadata: { annotations: { turn: String(i) } } } },
    }),
  async nodes(cluster, i) {
    const node: JsonObject = { apiVersion: "v1", kind: "Node", metadata: { name: nodeName(i) } };
    await cluster.call("POST", "/api/v1/nodes", node);
    await cluster.call("PATCH", `/api/v1/nodes/${nodeName(i)}`, { metadata: { labels: { turn: `t${i}` } } });
    await cluster.call("DELETE", `/api/v1/nodes/${nodeName(i)}`);
  },
  async namespaces(cluster, i) {
    const name = (n: number) => `soak-${n}`;
    await cluster.call("POST", "/api/v1/namespaces", { metadata: { name: name(i) } }, ALICE);
    namespaces.push(name(i));
    if (namespaces.length > KEPT_NAMESPACES)
      await cluster.call("DELETE", `/api/v1/namespaces/${namespaces.shift()}`);
  },
  policies: async (cluster, i) => {
    // The pools change, and one policy still selects every pod.
    const { metadata, ...changed } = policy(i % POLICIES, `etcd-${i % 3}`);
    const path = "/apis/kupid.gardener.cloud/v1alpha1/clusterpodschedulingpolicies";
    await cluster.call("PATCH", `${path}/${metadata.name}`, { spec: changed.spec });
  },
};
const namespaces: string[] = [];

/** A certificate to be served after its two minutes of trust, like a renewed one. */
async function rotate(cluster: ClusterAccess): Promise<void> {
  const { cert, key, ca } = await makeCertificate(serviceNames("usher", "usher-system"), Date.now());
  const base64 = (text: string) => Buffer.from(text).toString("base64");
  const data = { "next-tls.crt": base64(cert), "next-tls.key": base64(key), "next-ca.crt": base64(ca) };
  await cluster.call("PATCH", SECRET, { data });
}

async function repeat(
  cluster: ClusterAccess,
  sort: keyof typeof PACE_MS,
  until: number,
  seen: Counted,
): Promise<void> {
  while (performance.now() < until) {
    const started = performance.now();
    turn += 1;
    try {
      await TURNS[sort](cluster, turn, seen);
      seen.sent[sort] = (seen.sent[sort] ?? 0) + 1;
    } catch (error) {
      seen.failed.push(`${sort}: ${error instanceof Error ? error.message : error}`);
    }
    await sleep(Math.max(0, PACE_MS[sort] - (performance.now() - started)));
  }
}

serveWorker<LoadOptions, Seen>(async (cluster, { seconds }) => {
  const seen: Counted = { reviewed: [], unreviewed: [], sent: { rotations: 1 }, failed: [] };
  const until = performance.now() + seconds * 1_000;
  await rotate(cluster);
  const sorts = Object.keys(TURNS) as (keyof typeof PACE_MS)[];
  const clients = [...sorts, ...Array<"pods">(POD_CLIENTS - 1).fill("pods")];
  await Promise.all(clients.map((sort) => repeat(cluster, sort, until, seen)));
  return seen;
});
