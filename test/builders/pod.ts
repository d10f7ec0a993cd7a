import type { Json, JsonObject } from "../../src/core/json.ts";
import {
  compilePodPlacement,
  matchesPlacement,
  type NodeLike,
} from "../../src/core/kubernetes/selectors/node-selector.ts";

export interface PodParts {
  readonly name?: string;
  readonly namespace?: string;
  readonly labels?: Json;
  readonly annotations?: Json;
  readonly owner?: JsonObject;
  /** Further metadata. */
  readonly metadata?: JsonObject;
  readonly spec?: Json;
}

const CONTAINERS = { containers: [{ name: "main", image: "registry.example/app:1" }] };

export function pod({ name = "web-0", namespace = "shop", ...parts }: PodParts = {}): JsonObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: {
      name,
      namespace,
      ...(parts.labels === undefined ? {} : { labels: parts.labels }),
      ...(parts.annotations === undefined ? {} : { annotations: parts.annotations }),
      ...(parts.owner === undefined ? {} : { ownerReferences: [parts.owner] }),
      ...parts.metadata,
    },
    spec: parts.spec ?? { ...CONTAINERS },
  };
}

/** A reference from an object to the controller that made it. */
export function controlledBy(apiVersion: string, kind: string, name: string): JsonObject {
  return { apiVersion, kind, name, uid: "9d0e7a10-0000-4000-8000-000000000009", controller: true };
}

export interface WorkloadParts extends PodParts {
  /** Labels of the object itself, not of its template. */
  readonly objectLabels?: JsonObject;
  readonly templateMetadata?: JsonObject;
}

/** An object with a pod template; `labels` and `spec` are the template's. */
export function workload(
  apiVersion: string,
  kind: string,
  { name = "web", namespace = "shop", ...parts }: WorkloadParts = {},
): JsonObject {
  const template = {
    metadata: {
      ...(parts.labels === undefined ? {} : { labels: parts.labels }),
      ...parts.templateMetadata,
    },
    spec: parts.spec ?? { ...CONTAINERS },
  };
  const metadata = {
    name,
    namespace,
    ...(parts.objectLabels === undefined ? {} : { labels: parts.objectLabels }),
    ...(parts.annotations === undefined ? {} : { annotations: parts.annotations }),
    ...(parts.owner === undefined ? {} : { ownerReferences: [parts.owner] }),
    ...parts.metadata,
  };
  if (kind === "PodTemplate") return { apiVersion, kind, metadata, template };
  if (kind === "CronJob") {
    return { apiVersion, kind, metadata, spec: { schedule: "@daily", jobTemplate: { spec: { template } } } };
  }
  return { apiVersion, kind, metadata, spec: { template } };
}

export const deployment = (parts?: WorkloadParts): JsonObject => workload("apps/v1", "Deployment", parts);

/** Whether the scheduler would accept the node, by the pod's nodeSelector and required node affinity. */
export function matchesPodPlacement(podSpec: Json | undefined, node: NodeLike): boolean {
  return matchesPlacement(compilePodPlacement(podSpec), node);
}
