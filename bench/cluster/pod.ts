// The pods that are created through a real API server, by one arm of the measurement or the other.
import { type Json, type JsonObject, stringAt } from "../../src/core/json.ts";
import { NAMESPACE, roleOf } from "../fixtures/policies.ts";

/** Each pod is selected by one of this many policies. */
export const POLICIES = 10;

/**
 * Usher's leader would restore a deleted hook, so the load moves instead: the last two namespaces are the control
 * plane's, which usher's hook never covers. In one of them the bare webhook is called instead.
 */
export const ARMS = [
  { name: "usher", namespace: NAMESPACE },
  { name: "bare", namespace: "kube-node-lease" },
  { name: "without", namespace: "kube-public" },
] as const;
export type Arm = (typeof ARMS)[number];

/** Usher's patch of such a pod, as a constant: so the API server has the same work for both webhooks. */
export const SAME_PATCH = [
  { op: "add", path: "/spec/nodeSelector", value: { pool: "etcd" } },
  { op: "add", path: "/metadata/annotations", value: { "usher.dev/provenance": "-".repeat(150) } },
];

export function podsPath({ namespace }: Arm): string {
  return `/api/v1/namespaces/${namespace}/pods`;
}

/** A pod for a scheduler that does not run: events after its creation are not measured. */
export function podFor(i: number): JsonObject {
  const container = (name: string): JsonObject => ({
    name,
    image: `registry.example/etcd/${name}:v3.5.21`,
    command: [`/bin/${name}`, "--data-dir=/var/etcd/data", "--quota-backend-bytes=8589934592"],
    env: [{ name: "POD_NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
    resources: { requests: { cpu: "100m", memory: "200Mi" }, limits: { memory: "1Gi" } },
  });
  return {
    metadata: { generateName: "bench-", labels: { app: "etcd", role: roleOf(i % POLICIES) } },
    spec: { schedulerName: "nobody", containers: [container("etcd"), container("backup-restore")] },
  };
}

export function isPlaced(pod: Json): boolean {
  return stringAt(pod, "spec", "nodeSelector", "pool") !== undefined;
}
