import { at, isObject, type Json, type JsonObject, listAt, own } from "../json.ts";
import { labelsOf, nameOf } from "../kubernetes/object.ts";
import {
  type Feasibility,
  feasibilityByClass,
  feasibleNodes,
  type PreparedWorld,
  prepareWorld,
  releaseOf,
} from "../scheduling/scheduling.ts";
import type { World } from "./world.ts";

/** Where the pods of one workload may run. */
export interface NodeReach {
  readonly fits: number;
  readonly unknown: number;
  readonly total: number;
  /** In the scheduler's wording: `0/6 nodes are available: …` */
  readonly summary: string;
  /** Why other nodes are rejected, most nodes first. */
  readonly rejected: readonly { readonly reason: string; readonly nodes: number }[];
  /** The open questions of the result. */
  readonly notes: readonly string[];
}

/** How that differs between two worlds. */
export interface ReachDifference {
  readonly before?: NodeReach;
  readonly after?: NodeReach;
  readonly gained: readonly string[];
  readonly lost: readonly { readonly node: string; readonly reason: string }[];
}

/** Lists that the scheduler's filters read, by their resource. */
export const SCHEDULING_LISTS = {
  namespaces: "namespaces",
  persistentVolumes: "persistentvolumes",
  persistentVolumeClaims: "persistentvolumeclaims",
  storageClasses: "storageclasses.storage.k8s.io",
  csiNodes: "csinodes.storage.k8s.io",
  csiDrivers: "csidrivers.storage.k8s.io",
  csiStorageCapacities: "csistoragecapacities.storage.k8s.io",
  volumeAttachments: "volumeattachments.storage.k8s.io",
  deviceClasses: "deviceclasses.resource.k8s.io",
} as const;

/** A world as the scheduler's filters see it, without some of its pods. A list that was not read is unknown to them. */
export function schedulingWorld(world: World, without: ReadonlySet<JsonObject> = new Set()): PreparedWorld {
  const known = (resource: string) => (world.has(resource) ? world.list(resource) : undefined);
  const lists = Object.fromEntries(
    Object.entries(SCHEDULING_LISTS).map(([field, resource]) => [field, known(resource)]),
  ) as { readonly [Field in keyof typeof SCHEDULING_LISTS]: readonly JsonObject[] | undefined };
  return prepareWorld({
    release: releaseOf(world.assembly.view.serverVersion?.effective),
    nodes: world.list("nodes").map(measured),
    pods: known("pods")?.filter((pod) => !without.has(pod)),
    ...lists,
  });
}

/** More than any pod requests. */
const PLENTY: JsonObject = { cpu: "1000000", memory: "1Ei", "ephemeral-storage": "1Ei", pods: "1000000" };

/** A node with unknown allocatable counts as having room: whether a pod fits is then unknown, and not "no". */
function measured(node: JsonObject): JsonObject {
  if (isMeasured(node)) return node;
  const status = isObject(node["status"]) ? node["status"] : {};
  return { ...node, status: { ...status, allocatable: PLENTY } };
}

function isMeasured(node: JsonObject): boolean {
  const allocatable = at(node, "status", "allocatable");
  return isObject(allocatable) && Object.keys(allocatable).length > 0;
}

/** Nodes that fit and whose allocatable is unknown. */
function withUnmeasured(feasibility: Feasibility, unmeasured: ReadonlySet<string>): Feasibility {
  const fitting = feasibility.groups.find(({ verdict }) => verdict.kind === "fits");
  const open = fitting?.nodes.filter((name) => unmeasured.has(name)) ?? [];
  if (fitting === undefined || open.length === 0) return feasibility;
  const reason = "the node has no status.allocatable";
  const fits = fitting.nodes.filter((name) => !unmeasured.has(name));
  const group = { verdict: { kind: "unknown", filter: "NodeResourcesFit", reason } as const, nodes: open };
  return {
    ...feasibility,
    groups: [
      ...(fits.length === 0 ? [] : [{ ...fitting, nodes: fits }]),
      group,
      ...feasibility.groups.filter((one) => one !== fitting),
    ],
    fits: fits.length,
    unknown: feasibility.unknown + open.length,
    notes: [
      `unknown for ${open.length === 1 ? "1 node" : `${open.length} nodes`}: ${reason}`,
      ...feasibility.notes,
    ],
  };
}

/** The tolerations that the DaemonSet controller gives its pods, so that they tolerate node problems. */
const DAEMON_TOLERATIONS: readonly (readonly [key: string, effect: string])[] = [
  ["node.kubernetes.io/not-ready", "NoExecute"],
  ["node.kubernetes.io/unreachable", "NoExecute"],
  ["node.kubernetes.io/disk-pressure", "NoSchedule"],
  ["node.kubernetes.io/memory-pressure", "NoSchedule"],
  ["node.kubernetes.io/pid-pressure", "NoSchedule"],
  ["node.kubernetes.io/unschedulable", "NoSchedule"],
];

/** A pod as the scheduler sees it once its controller has created it. */
export function scheduledPod(pod: JsonObject, kind: string): JsonObject {
  const spec = pod["spec"];
  if (kind !== "DaemonSet" || !isObject(spec)) return pod;
  const onHost = own(spec, "hostNetwork") === true;
  const added: Json[] = [
    ...DAEMON_TOLERATIONS,
    ...(onHost ? [["node.kubernetes.io/network-unavailable", "NoSchedule"] as const] : []),
  ].map(([key, effect]) => ({ key, operator: "Exists", effect }));
  return { ...pod, spec: { ...spec, tolerations: [...listAt(spec, "tolerations"), ...added] } };
}

/** Filters whose verdict may change once pods of the workload itself are gone. */
const BY_PODS: ReadonlySet<string> = new Set([
  "NodePorts",
  "NodeResourcesFit",
  "VolumeRestrictions",
  "NodeVolumeLimits",
  "PodTopologySpread",
  "InterPodAffinity",
]);

function dependsOnPods({ verdict }: Feasibility["groups"][number]): boolean {
  return verdict.kind === "fails" && BY_PODS.has(verdict.filter);
}

/** Each prepares a separate world: 100 of 5,000 pods take about a second. */
const MAX_REPLACEMENTS = 100;

/** Where pods may run in one world. */
export class Placements {
  readonly #world: World;
  readonly #unmeasured: ReadonlySet<string>;
  readonly #feasibilityOf: (pod: JsonObject) => Feasibility;
  #replacements = 0;

  constructor(world: World) {
    this.#world = world;
    this.#unmeasured = new Set(
      world
        .list("nodes")
        .filter((node) => !isMeasured(node))
        .map(nameOf),
    );
    this.#feasibilityOf = feasibilityByClass(schedulingWorld(world));
  }

  /** `own`: the current pods of the workload. If they leave it no node, the result is that without them: they are replaced. */
  of(pod: JsonObject | undefined, kind: string, own: readonly JsonObject[] = []): Feasibility | undefined {
    if (pod === undefined) return undefined;
    const scheduled = scheduledPod(pod, kind);
    const feasibility = this.#feasibilityOf(scheduled);
    const isStuck = own.length > 0 && feasibility.fits + feasibility.unknown === 0;
    if (!isStuck || !feasibility.groups.some(dependsOnPods))
      return withUnmeasured(feasibility, this.#unmeasured);
    if (this.#replacements >= MAX_REPLACEMENTS)
      return { ...feasibility, notes: [...feasibility.notes, "the pods that it has now are counted"] };
    this.#replacements += 1;
    const replaced = feasibleNodes(scheduled, schedulingWorld(this.#world, new Set(own)));
    return withUnmeasured(replaced, this.#unmeasured);
  }
}

export function reachOf({ fits, unknown, fails, summary, notes, groups }: Feasibility): NodeReach {
  const rejected = groups.flatMap(({ verdict, nodes }) =>
    verdict.kind === "fails" ? [{ reason: verdict.reason, nodes: nodes.length }] : [],
  );
  return { fits, unknown, total: fits + unknown + fails, summary, rejected, notes };
}

/** The nodes that no filter rejects. */
export function openNodes(feasibility: Feasibility | undefined): Set<string> {
  const groups = feasibility?.groups ?? [];
  return new Set(groups.flatMap(({ verdict, nodes }) => (verdict.kind === "fails" ? [] : nodes)));
}

export function reachDifference(
  before: Feasibility | undefined,
  after: Feasibility | undefined,
): ReachDifference {
  const [had, has] = [openNodes(before), openNodes(after)];
  // One pass: a search for each node would be quadratic.
  const reasons = new Map(
    (after?.groups ?? []).flatMap(({ verdict, nodes }) =>
      verdict.kind === "fails" ? nodes.map((node) => [node, verdict.reason] as const) : [],
    ),
  );
  return {
    ...(before === undefined ? {} : { before: reachOf(before) }),
    ...(after === undefined ? {} : { after: reachOf(after) }),
    gained: [...has.difference(had)],
    lost:
      after === undefined
        ? []
        : [...had.difference(has)].map((node) => ({ node, reason: reasons.get(node) ?? "node is gone" })),
  };
}

/** Labels by which providers and users name pools of nodes, the most specific first. */
const POOL_LABELS = [
  "karpenter.sh/nodepool",
  "worker.gardener.cloud/pool",
  "cloud.google.com/gke-nodepool",
  "eks.amazonaws.com/nodegroup",
  "kubernetes.azure.com/agentpool",
  "node.kubernetes.io/pool",
  "node-pool",
  "nodepool",
  "pool",
];

/** The pool of a node: the value of the given label, or of the first known one that it has. */
export function poolOf(node: JsonObject, label?: string): string | undefined {
  const labels = labelsOf(node);
  const keys = label === undefined ? POOL_LABELS : [label];
  const value = keys.map((key) => own(labels, key)).find((one) => typeof one === "string" && one !== "");
  return typeof value === "string" ? value : undefined;
}

/** The pool of each node. Nodes without one are in none. */
export function poolsOf(world: World, label: string | undefined): ReadonlyMap<string, string> {
  const pools = new Map<string, string>();
  for (const node of world.list("nodes")) {
    const pool = poolOf(node, label);
    if (pool !== undefined) pools.set(nameOf(node), pool);
  }
  return pools;
}
