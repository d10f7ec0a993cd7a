// The pods that have a node, counted by the properties that filters need. Pods of one namespace with the same labels
// are one class, and so are equal anti-affinity terms: a selector is evaluated once per class, not once per pod.
import { at, canonical, isObject, type Json, type JsonObject, listAt, own, stringAt } from "../json.ts";
import { isBeingDeleted, labelsOf, namespaceOf } from "../kubernetes/object.ts";
import { hasEnded } from "../kubernetes/pod-state.ts";
import type { NodeTable } from "./node-table.ts";
import { type AffinityTerm, antiAffinityTerms } from "./pod-affinity-terms.ts";
import { isSidecar, podRequests } from "./pod-requests.ts";

/** Pods with the same labels in one namespace. */
export interface LabelClass {
  readonly labels: JsonObject | undefined;
  /** The node of each pod; those that are being deleted apart. */
  readonly nodes: number[];
  readonly deletedOn: number[];
}

/** A required anti-affinity term with the nodes of the pods that have it. */
export interface PlacedTerm {
  readonly term: AffinityTerm;
  readonly nodes: number[];
}

export interface PlacedTerms {
  readonly terms: readonly PlacedTerm[];
  /** The labels that their selectors name. */
  readonly keys: ReadonlySet<string>;
  /** Whether a pod has a term that can't be read. */
  readonly unreadable: boolean;
}

export interface HostPort {
  readonly ip: string;
  readonly protocol: string;
  readonly port: number;
}

export class PlacedPods {
  readonly #pods: readonly JsonObject[];
  /** By pod. */
  readonly #nodes: readonly number[];
  readonly #nodeCount: number;
  readonly #minor: number;
  #requested: ReadonlyMap<string, Float64Array> | undefined;
  #ports: ReadonlyMap<number, readonly HostPort[]> | undefined;
  #labels: ReadonlyMap<string, readonly LabelClass[]> | undefined;
  #terms: PlacedTerms | undefined;
  #volumes: ReadonlyMap<number, readonly JsonObject[]> | undefined;
  #claims: ReadonlySet<string> | undefined;
  #lowest: Float64Array | undefined;
  /** How many pods each node has. */
  readonly counts: Int32Array;

  constructor(pods: readonly JsonObject[], nodes: NodeTable, minor: number) {
    const placed: JsonObject[] = [];
    const indexes: number[] = [];
    this.counts = new Int32Array(nodes.count);
    for (const pod of pods) {
      const node = nodes.indexOf(stringAt(pod, "spec", "nodeName") ?? "");
      if (node === undefined || hasEnded(pod)) continue;
      placed.push(pod);
      indexes.push(node);
      this.counts[node] = (this.counts[node] ?? 0) + 1;
    }
    this.#pods = placed;
    this.#nodes = indexes;
    this.#nodeCount = nodes.count;
    this.#minor = minor;
  }

  /** By resource, the sum of requests on each node; NaN if an amount is unknown. */
  get requested(): ReadonlyMap<string, Float64Array> {
    if (this.#requested !== undefined) return this.#requested;
    const requested = new Map<string, Float64Array>();
    for (const [pod, node] of this.#each()) {
      for (const [name, amount] of podRequests(pod, { minor: this.#minor, placed: true })) {
        let column = requested.get(name);
        if (column === undefined) {
          column = new Float64Array(this.#nodeCount);
          requested.set(name, column);
        }
        column[node] = (column[node] ?? 0) + amount;
      }
    }
    this.#requested = requested;
    return requested;
  }

  /** By node. */
  get ports(): ReadonlyMap<number, readonly HostPort[]> {
    this.#ports ??= this.#group(hostPortsOf);
    return this.#ports;
  }

  /** By node, the pods with volumes that restrict others: claims, and disks of a provider. */
  get withVolumes(): ReadonlyMap<number, readonly JsonObject[]> {
    this.#volumes ??= this.#group((pod) => (listAt(pod, "spec", "volumes").some(isDisk) ? [pod] : []));
    return this.#volumes;
  }

  /** `namespace/name` of the claims that pods name. */
  get claims(): ReadonlySet<string> {
    if (this.#claims !== undefined) return this.#claims;
    const claims = new Set<string>();
    for (const [pod] of this.#each()) {
      for (const volume of listAt(pod, "spec", "volumes")) {
        const claim = stringAt(volume, "persistentVolumeClaim", "claimName");
        if (claim !== undefined) claims.add(`${namespaceOf(pod)}/${claim}`);
      }
    }
    this.#claims = claims;
    return claims;
  }

  /** By node, the lowest priority of its pods; infinite if there are none. */
  get lowestPriority(): Float64Array {
    if (this.#lowest !== undefined) return this.#lowest;
    const lowest = new Float64Array(this.#nodeCount).fill(Number.POSITIVE_INFINITY);
    for (const [pod, node] of this.#each())
      lowest[node] = Math.min(lowest[node] ?? Number.POSITIVE_INFINITY, priorityOf(pod));
    this.#lowest = lowest;
    return lowest;
  }

  /** By namespace. */
  get byLabels(): ReadonlyMap<string, readonly LabelClass[]> {
    if (this.#labels !== undefined) return this.#labels;
    const namespaces = new Map<string, Map<string, LabelClass>>();
    for (const [pod, node] of this.#each()) {
      const namespace = namespaceOf(pod);
      const classes = namespaces.get(namespace) ?? new Map<string, LabelClass>();
      namespaces.set(namespace, classes);
      const labels = labelsOf(pod);
      const key = canonical(labels);
      const found = classes.get(key) ?? { labels, nodes: [], deletedOn: [] };
      classes.set(key, found);
      (isBeingDeleted(pod) ? found.deletedOn : found.nodes).push(node);
    }
    this.#labels = new Map([...namespaces].map(([name, classes]) => [name, [...classes.values()]]));
    return this.#labels;
  }

  /** The required anti-affinity of all pods. */
  get antiAffinity(): PlacedTerms {
    if (this.#terms !== undefined) return this.#terms;
    const terms = new Map<string, PlacedTerm>();
    let unreadable = false;
    for (const [pod, node] of this.#each()) {
      if (!isObject(at(pod, "spec", "affinity", "podAntiAffinity"))) continue;
      const required = at(pod, "spec", "affinity", "podAntiAffinity", REQUIRED);
      if (required === undefined) continue;
      const key = canonical([namespaceOf(pod), required]);
      const compiled = antiAffinityTerms(pod, "placed");
      unreadable ||= compiled === undefined;
      for (const [i, term] of (compiled ?? []).entries()) {
        const found = terms.get(`${key}#${i}`) ?? { term, nodes: [] };
        terms.set(`${key}#${i}`, found);
        found.nodes.push(node);
      }
    }
    const keys = new Set<string>();
    for (const { term } of terms.values())
      if (term.selector.kind === "requirements")
        for (const { key } of term.selector.requirements) keys.add(key);
    this.#terms = { terms: [...terms.values()], keys, unreadable };
    return this.#terms;
  }

  *#each(): Iterable<readonly [pod: JsonObject, node: number]> {
    for (const [i, pod] of this.#pods.entries()) yield [pod, this.#nodes[i] ?? 0];
  }

  #group<T>(read: (pod: JsonObject) => readonly T[]): ReadonlyMap<number, readonly T[]> {
    const groups = new Map<number, T[]>();
    for (const [pod, node] of this.#each()) {
      const found = read(pod);
      if (found.length === 0) continue;
      const group = groups.get(node);
      if (group === undefined) groups.set(node, [...found]);
      else group.push(...found);
    }
    return groups;
  }
}

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";

/** The host ports of a pod: of its containers and sidecars. */
export function hostPortsOf(pod: JsonObject): readonly HostPort[] {
  const containers = [
    ...listAt(pod, "spec", "initContainers").filter(isSidecar),
    ...listAt(pod, "spec", "containers"),
  ];
  const ports: HostPort[] = [];
  for (const container of containers) {
    for (const item of listAt(container, "ports")) {
      const port = own(item, "hostPort");
      if (typeof port !== "number" || !(port > 0)) continue;
      const ip = stringAt(item, "hostIP") ?? "";
      const protocol = stringAt(item, "protocol") ?? "";
      ports.push({ ip: ip === "" ? ANY_IP : ip, protocol: protocol === "" ? "TCP" : protocol, port });
    }
  }
  return ports;
}

export const ANY_IP = "0.0.0.0";

/** The priority that admission has set. */
export function priorityOf(pod: JsonObject): number {
  const priority = at(pod, "spec", "priority");
  return typeof priority === "number" ? priority : 0;
}

const DISKS = [
  "persistentVolumeClaim",
  "ephemeral",
  "gcePersistentDisk",
  "awsElasticBlockStore",
  "rbd",
  "iscsi",
  "azureDisk",
  "azureFile",
  "cinder",
  "vsphereVolume",
  "portworxVolume",
];

function isDisk(volume: Json): boolean {
  return DISKS.some((source) => isObject(own(volume, source)));
}
