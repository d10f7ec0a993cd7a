// Objects and criteria that the placement tests share.
import type { JsonObject } from "../../../src/core/json.ts";
import { SPEC } from "../fixtures/placement-stage.ts";

export const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
export const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

export const within = (key: string, ...values: string[]): JsonObject => ({ key, operator: "In", values });
export const requiring = (...terms: readonly (readonly JsonObject[])[]): JsonObject => ({
  nodeAffinity: {
    [REQUIRED]: {
      nodeSelectorTerms: terms.map((requirements) => ({ matchExpressions: [...requirements] })),
    },
  },
});

export const DISK = within("disk", "ssd");
export const POOL = within("pool", "etcd");
export const APART: JsonObject = {
  [REQUIRED]: [{ topologyKey: "zone", labelSelector: { matchLabels: { role: "db" } } }],
};
export const SPREAD: JsonObject = {
  maxSkew: 1,
  topologyKey: "zone",
  whenUnsatisfiable: "DoNotSchedule",
  labelSelector: { matchLabels: { role: "db" } },
};
export const DEDICATED: JsonObject = { key: "dedicated", operator: "Exists", effect: "NoSchedule" };
export const PREFERENCE: JsonObject = { weight: 3, preference: { matchExpressions: [DISK] } };
export const GATES = [{ name: "example.com/own" }];

/** All criteria that one object can have at the same time. */
const EVERYTHING: JsonObject = {
  nodeSelector: { pool: "etcd" },
  tolerations: [DEDICATED],
  affinity: {
    nodeAffinity: {
      [REQUIRED]: { nodeSelectorTerms: [{ matchExpressions: [POOL] }] },
      [PREFERRED]: [PREFERENCE],
    },
    podAntiAffinity: APART,
  },
  topologySpreadConstraints: [SPREAD],
  schedulerName: "packing",
  priorityClassName: "patient",
  runtimeClassName: "sandboxed",
};

const forApp = (app: string): JsonObject => ({ podSelector: { matchLabels: { app } } });

/** Each for the pods of one app. */
export const POLICIES: Readonly<Record<string, JsonObject>> = {
  everything: { ...forApp("everything"), ...EVERYTHING },
  "everything-later": {
    ...forApp("later"),
    ...EVERYTHING,
    onUpdate: "Inject",
    schedulingGates: [{ name: "example.com/quota" }],
  },
  // For a DaemonSet's pods, the controller would delete and recreate pods on the wrong node.
  "pods-only": { ...forApp("daemon"), targets: "Pods", nodeName: "w0" },
  daemon: { ...forApp("daemon"), nodeSelector: { pool: "etcd" } },
  pool: { ...forApp("pool"), nodeSelector: { pool: "etcd" } },
  ghost: { ...forApp("ghost"), nodeName: "ghost" },
  "ghost-closed": { ...forApp("closed"), nodeName: "ghost", failurePolicy: "Fail" },
  pinned: { ...forApp("pinned"), nodeName: "w0" },
  patient: { ...forApp("class"), priorityClassName: "patient" },
};

export function pod(name: string, app: string, spec: JsonObject = {}): JsonObject {
  return { metadata: { name, labels: { app } }, spec: { ...SPEC, ...spec } };
}

export function job(name: string, app: string, spec: JsonObject = {}, template: JsonObject = {}): JsonObject {
  const podSpec = { ...SPEC, restartPolicy: "Never", ...template };
  return {
    metadata: { name },
    spec: { ...spec, template: { metadata: { labels: { app } }, spec: podSpec } },
  };
}

/** A StatefulSet, DaemonSet or ReplicaSet, optionally owned by a controller. */
export function set(kind: string, name: string, app: string, owner?: JsonObject): JsonObject {
  const owners = owner === undefined ? {} : { ownerReferences: [{ uid: "u-1", controller: true, ...owner }] };
  return {
    apiVersion: "apps/v1",
    kind,
    metadata: { name, ...owners },
    spec: {
      ...(kind === "StatefulSet" ? { serviceName: name } : {}),
      selector: { matchLabels: { app } },
      template: { metadata: { labels: { app } }, spec: SPEC },
    },
  };
}
