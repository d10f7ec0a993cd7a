import { at, isObject, type Json, type JsonObject, own } from "../json.ts";
import type { Path } from "../path.ts";

/** A kind of object that creates pods, or is one. */
export interface WorkloadKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
  /** The plural, as in URLs and in rules. */
  readonly resource: string;
  /** The path of the pod template; empty for a Pod, which has metadata and spec itself. */
  readonly template: Path;
}

const IN_SPEC: Path = ["spec", "template"];

export const POD: WorkloadKind = { group: "", version: "v1", kind: "Pod", resource: "pods", template: [] };

export const REPLICATION_CONTROLLER: WorkloadKind = {
  group: "",
  version: "v1",
  kind: "ReplicationController",
  resource: "replicationcontrollers",
  template: IN_SPEC,
};

export const BUILT_IN_WORKLOADS: readonly WorkloadKind[] = [
  POD,
  REPLICATION_CONTROLLER,
  { group: "", version: "v1", kind: "PodTemplate", resource: "podtemplates", template: ["template"] },
  { group: "apps", version: "v1", kind: "ReplicaSet", resource: "replicasets", template: IN_SPEC },
  { group: "apps", version: "v1", kind: "Deployment", resource: "deployments", template: IN_SPEC },
  { group: "apps", version: "v1", kind: "StatefulSet", resource: "statefulsets", template: IN_SPEC },
  { group: "apps", version: "v1", kind: "DaemonSet", resource: "daemonsets", template: IN_SPEC },
  { group: "batch", version: "v1", kind: "Job", resource: "jobs", template: IN_SPEC },
  {
    group: "batch",
    version: "v1",
    kind: "CronJob",
    resource: "cronjobs",
    template: ["spec", "jobTemplate", "spec", "template"],
  },
];

export interface WorkloadTable {
  /** Every kind of the table, those built in first. */
  readonly all: readonly WorkloadKind[];
  byResource(group: string, resource: string): WorkloadKind | undefined;
  byKind(group: string, kind: string): WorkloadKind | undefined;
}

/**
 * The built-in kinds and those of a configuration. If two claim one resource or kind the earlier one counts, so that no
 * configuration can move the template of a Deployment.
 */
export function workloadTable(extra: readonly WorkloadKind[] = []): WorkloadTable {
  const resources = new Map<string, WorkloadKind>();
  const kinds = new Map<string, WorkloadKind>();
  const all: WorkloadKind[] = [];
  for (const workload of [...BUILT_IN_WORKLOADS, ...extra]) {
    const resource = `${workload.group}/${workload.resource}`;
    const kind = `${workload.group}/${workload.kind}`;
    if (resources.has(resource) || kinds.has(kind)) continue;
    resources.set(resource, workload);
    kinds.set(kind, workload);
    all.push(workload);
  }
  return {
    all,
    byResource: (group, resource) => resources.get(`${group}/${resource}`),
    byKind: (group, kind) => kinds.get(`${group}/${kind}`),
  };
}

export function isBuiltIn(workload: WorkloadKind): boolean {
  return BUILT_IN_WORKLOADS.some(({ group, kind }) => group === workload.group && kind === workload.kind);
}

/** A pod itself, not a controller of pods. */
export function isPod({ group, kind }: WorkloadKind): boolean {
  return group === "" && kind === "Pod";
}

export function specPath(workload: WorkloadKind): Path {
  return [...workload.template, "spec"];
}

export interface PodTemplate {
  readonly path: Path;
  readonly metadata: JsonObject | undefined;
  readonly spec: JsonObject | undefined;
}

/** The object's pod template; `undefined` if it has none, as a ReplicationController may. */
export function podTemplateOf(object: Json | undefined, workload: WorkloadKind): PodTemplate | undefined {
  const template = at(object, ...workload.template);
  if (!isObject(template)) return undefined;
  const metadata = own(template, "metadata");
  const spec = own(template, "spec");
  return {
    path: workload.template,
    metadata: isObject(metadata) ? metadata : undefined,
    spec: isObject(spec) ? spec : undefined,
  };
}
