// Workloads that are created once and then changed in every way, and the policy that places them.
import type { JsonObject } from "../../../src/core/json.ts";
import { SPEC } from "../fixtures/placement-stage.ts";
import { DISK, POOL, requiring } from "./objects.ts";

export const DEDICATED = { key: "dedicated", operator: "Equal", value: "etcd", effect: "NoSchedule" };

/** An example of each way in which fields merge: a map, lists, and the product of terms. */
export const HOME: JsonObject = {
  podSelector: { matchLabels: { app: "web" } },
  nodeSelector: { pool: "etcd" },
  tolerations: [DEDICATED],
  affinity: {
    ...requiring([POOL]),
    podAntiAffinity: {
      preferredDuringSchedulingIgnoredDuringExecution: [
        {
          weight: 7,
          podAffinityTerm: { topologyKey: "zone", labelSelector: { matchLabels: { app: "web" } } },
        },
      ],
    },
  },
};

/** The user's own node constraints. */
export const OWN: JsonObject = {
  nodeSelector: { disk: "ssd" },
  tolerations: [{ key: "own", operator: "Exists" }],
  affinity: requiring([DISK]),
};

export function workload(kind: string, name: string, app: string, spec: JsonObject = {}): JsonObject {
  return {
    apiVersion: "apps/v1",
    kind,
    metadata: { name },
    spec: {
      ...(kind === "DaemonSet" ? {} : { replicas: 1 }),
      ...(kind === "StatefulSet" ? { serviceName: name } : {}),
      selector: { matchLabels: { workload: name } },
      template: { metadata: { labels: { workload: name, app } }, spec: { ...SPEC, ...spec } },
    },
  };
}

export const deployment = (name: string, app: string, spec?: JsonObject) =>
  workload("Deployment", name, app, spec);
