// The pods that are created through a real API server, by one arm of the measurement or the other.
import { type Json, type JsonObject, stringAt } from "../../src/core/json.ts";
import { NAMESPACE, roleOf } from "../fixtures/policies.ts";

/** Each pod is wanted by one of so many policies. */
export const POLICIES = 10;

/**
 * Deleting the hook would only make usher's leader put it back, so the load moves: the last two namespaces are the control plane's,
 * and usher's hook never asks there. In one of them the bare webhook is asked instead.
 */
export const ARMS = [
  { name: "usher", namespace: NAMESPACE },
  { name: "bare", namespace: "kube-node-lease" },
  { name: "without", namespace: "kube-public" },
] as const;
export type Arm = (typeof ARMS)[number];

/** What usher writes into such a pod, as a constant: so the API server has the same to do for both webhooks. */
export const SAME_PATCH = [
  { op: "add", path: "/spec/nodeSelector", value: { pool: "etcd" } },
  { op: "add", path: "/metadata/annotations", value: { "usher.dev/provenance": "-".repeat(150) } },
];

export function podsPath({ namespace }: Arm): string {
  return `/api/v1/namespaces/${namespace}/pods`;
}

/** A pod for a scheduler that does not run: what happens after it was created is not what is measured. */
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
