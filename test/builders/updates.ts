import { at, type JsonObject } from "../../src/core/json.ts";
import { PROVENANCE } from "../../src/core/provenance/annotation.ts";
import { again } from "./json.ts";
import { type Placed, placed, SHOP } from "./placed.ts";
import { clusterPolicy } from "./policy.ts";
import { requestFor } from "./request.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
export const zone = (...values: string[]) => ({
  matchExpressions: [{ key: "zone", operator: "In", values }],
});
export const nodeAffinity = (...terms: JsonObject[]) => ({
  nodeAffinity: { [REQUIRED]: { nodeSelectorTerms: terms } },
});
export const ANTI_TERM = {
  topologyKey: "kubernetes.io/hostname",
  labelSelector: { matchLabels: { app: "x" } },
};
export const ANTI = { podAntiAffinity: { [REQUIRED]: [ANTI_TERM] } };
export const POOL = { key: "pool", operator: "Equal", value: "etcd", effect: "NoSchedule" };
export const OTHER = { key: "other", operator: "Exists" };

export const policy = (criteria: JsonObject, name = "p", generation = 1) =>
  clusterPolicy(name, { namespaceSelector: {}, podSelector: {}, ...criteria }, { generation });
export const injecting = (criteria: JsonObject, name = "p", generation = 1) =>
  policy({ onUpdate: "Inject", ...criteria }, name, generation);

export const update = (
  known: readonly JsonObject[],
  now: JsonObject,
  old: JsonObject,
  change: Parameters<typeof requestFor>[1] = {},
): Placed =>
  placed([SHOP, ...known], requestFor(now, { operation: "UPDATE", oldObject: again(old), ...change }));

/** The object as stored when created under these policies. */
export const stored = (known: readonly JsonObject[], made: JsonObject): JsonObject =>
  again(placed([SHOP, ...known], made).object);

export const templateOf = ({ object }: Placed) => at(object, "spec", "template", "spec");
export const noPatch = { allowed: true, patch: [], warnings: [] };

export const withAnnotations = (object: JsonObject, annotations: JsonObject): JsonObject => {
  const metadata = object["metadata"] as JsonObject;
  const present = at(metadata, "annotations") as JsonObject | undefined;
  return { ...object, metadata: { ...metadata, annotations: { ...present, ...annotations } } };
};
export const asking = (object: JsonObject) => withAnnotations(object, { "usher.dev/reapply": "now" });

export const EVERYTHING: JsonObject = {
  nodeSelector: { disk: "ssd" },
  affinity: { ...nodeAffinity(zone("a"), zone("b")), ...ANTI },
  tolerations: [POOL],
  schedulerName: "mine",
  topologySpreadConstraints: [{ ...ANTI_TERM, maxSkew: 1, whenUnsatisfiable: "DoNotSchedule" }],
};

export function noteOf(object: JsonObject): JsonObject {
  return { [PROVENANCE]: at(object, "metadata", "annotations", PROVENANCE) ?? "" };
}
