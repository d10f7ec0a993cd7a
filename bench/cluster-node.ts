// Nodes as a kubelet registers them, and the heartbeat that it writes into their status for ever.
import type { JsonObject } from "../src/core/json.ts";

export function nodeName(i: number): string {
  return `node-${String(i).padStart(5, "0")}`;
}

export function nodeObject(i: number): JsonObject {
  const name = nodeName(i);
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      labels: {
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "topology.kubernetes.io/zone": `zone-${i % 3}`,
        pool: i % 10 === 0 ? "etcd" : "worker",
      },
    },
    status: {
      capacity: { cpu: "16", memory: "64Gi", pods: "110" },
      allocatable: { cpu: "15", memory: "60Gi", pods: "110" },
      ...heartbeat(),
    },
  };
}

/** Only times change, as in a healthy cluster. */
export function heartbeat(): JsonObject {
  const now = new Date().toISOString().replace(/\.\d+Z$/, "Z");
  const condition = (type: string, status: string, reason: string): JsonObject => ({
    type,
    status,
    reason,
    message: `kubelet: ${reason}`,
    lastHeartbeatTime: now,
    lastTransitionTime: "2026-01-01T00:00:00Z",
  });
  return {
    conditions: [
      condition("MemoryPressure", "False", "KubeletHasSufficientMemory"),
      condition("DiskPressure", "False", "KubeletHasNoDiskPressure"),
      condition("PIDPressure", "False", "KubeletHasSufficientPID"),
      condition("Ready", "True", "KubeletReady"),
    ],
  };
}
