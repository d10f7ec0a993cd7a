import type { Json, JsonObject } from "../../src/core/json.ts";
import { type Feasibility, feasibleNodes, prepareWorld } from "../../src/core/scheduling/scheduling.ts";
import type { SchedulingWorld } from "../../src/core/scheduling/world.ts";

/** A cluster state in which everything is in the view, and empty. */
export const EMPTY_WORLD = {
  nodes: [],
  pods: [],
  namespaces: [],
  persistentVolumes: [],
  persistentVolumeClaims: [],
  storageClasses: [],
  csiNodes: [],
  csiDrivers: [],
  csiStorageCapacities: [],
  volumeAttachments: [],
  deviceClasses: [],
} as const satisfies SchedulingWorld;

export interface NodeParts {
  readonly labels?: JsonObject;
  readonly spec?: JsonObject;
  readonly allocatable?: JsonObject;
  readonly declaredFeatures?: readonly string[];
}

/** A node with capacity for pods. */
export function schedulingNode(name: string, parts: NodeParts = {}): JsonObject {
  return {
    metadata: { name, labels: { "kubernetes.io/hostname": name, ...parts.labels } },
    spec: parts.spec ?? {},
    status: {
      allocatable: { cpu: "4", memory: "8Gi", pods: "110", ...parts.allocatable },
      declaredFeatures: parts.declaredFeatures ?? [],
    },
  };
}

export function schedulingPod(spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject {
  return { metadata: { name: "new", namespace: "default", ...metadata }, spec };
}

export function placedPod(node: string, spec: JsonObject = {}, metadata: JsonObject = {}): JsonObject {
  return { metadata: { name: "old", namespace: "default", ...metadata }, spec: { nodeName: node, ...spec } };
}

/** A container with these requests. */
export function requesting(requests: JsonObject): Json {
  return { name: "main", resources: { requests } };
}

/** The verdict on each node: `fits`, `Filter: reason`, or `unknown Filter: reason`. */
export function verdicts(pod: JsonObject, world: Partial<SchedulingWorld>): Readonly<Record<string, string>> {
  const full: SchedulingWorld = { ...EMPTY_WORLD, ...world };
  const feasibility = feasibleNodes(pod, prepareWorld(full));
  const names = full.nodes.map((node) => String((node["metadata"] as JsonObject)["name"]));
  return Object.fromEntries(names.map((name) => [name, said(feasibility, name)]));
}

function said({ groups }: Feasibility, node: string): string {
  const verdict = groups.find(({ nodes }) => nodes.includes(node))?.verdict;
  if (verdict === undefined || verdict.kind === "fits") return verdict?.kind ?? "missing";
  return `${verdict.kind === "unknown" ? "unknown " : ""}${verdict.filter}: ${verdict.reason}`;
}
