// The objects of a large cluster, and the heartbeat that every kubelet in it writes.
import type { JsonObject } from "../../src/core/json.ts";
import { nodeObject } from "../../test/cluster/access/node.ts";

/** The size that the figures are promised for. */
export const LARGE_CLUSTER = { policies: 1_000, nodes: 5_000, namespaces: 10_000 } as const;

export function nodeName(i: number): string {
  return `node-${String(i).padStart(5, "0")}`;
}

export function largeClusterNode(i: number): JsonObject {
  return nodeObject(nodeName(i), {
    labels: { "topology.kubernetes.io/zone": `zone-${i % 3}`, pool: i % 10 === 0 ? "etcd" : "worker" },
    capacity: { cpu: "16", memory: "64Gi", pods: "110" },
    conditions: heartbeat(),
  });
}

export function largeClusterNamespace(i: number): JsonObject {
  const labels = { environment: i % 2 === 0 ? "prod" : "test", team: `team-${i % 100}` };
  return { apiVersion: "v1", kind: "Namespace", metadata: { name: `tenant-${i}`, labels } };
}

/** The conditions of a healthy node: from one heartbeat to the next only times change. */
export function heartbeat(): readonly JsonObject[] {
  const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const condition = (type: string, status: string, reason: string): JsonObject => ({
    type,
    status,
    reason,
    message: `kubelet: ${reason}`,
    lastHeartbeatTime: now,
    lastTransitionTime: "2026-01-01T00:00:00Z",
  });
  return [
    condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
    condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
    condition("PIDPressure", "False", "KubeletHasSufficientPID"),
    condition("Ready", "True", "KubeletReady"),
  ];
}
