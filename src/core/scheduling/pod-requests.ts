// How much a pod requests: containers, init containers, sidecars, overhead, resources of the whole pod, and resizes under way.
import { at, isObject, type Json, type JsonObject, listAt, own, stringAt } from "../json.ts";
import { MILLI, ONE, parseQuantity, wholeUnits } from "../kubernetes/quantity.ts";

/** By resource, in billionths. */
type ResourceList = Map<string, bigint>;

/** By resource: CPU in thousandths, everything else in whole units. NaN if the amount can't be read or is beyond 2^53. */
export type Amounts = ReadonlyMap<string, number>;

/** Which features of a release count. */
export interface RequestFeatures {
  /** The minor version of Kubernetes 1. */
  readonly minor: number;
  /** Whether the status counts too, as for a placed pod. */
  readonly placed: boolean;
}

/** An invalid quantity: larger than any valid one, and recognized when converted. */
const UNREADABLE = 2n ** 200n;

const POD_LEVEL_SINCE = 34;
const POD_LEVEL_RESIZE_SINCE = 36;
/** Since 1.37 a resize is evaluated for the pod as a whole, before by container. */
const RESIZE_BY_POD_SINCE = 37;

export function podRequests(pod: JsonObject, features: RequestFeatures): Amounts {
  const requests = containerRequests(pod, features);
  const { minor, placed } = features;
  const podLevel = listOf(at(pod, "spec", "resources", "requests"));
  if (minor >= POD_LEVEL_SINCE && podLevel !== undefined && [...podLevel.keys()].some(isPodLevel)) {
    const status = at(pod, "status", "resources");
    const resized = minor >= POD_LEVEL_RESIZE_SINCE && placed && isObject(status);
    const effective = resized
      ? largest([
          isResizeInfeasible(pod) ? undefined : podLevel,
          listOf(own(status, "requests")),
          listOf(at(pod, "status", "allocatedResources")),
        ])
      : podLevel;
    const names = minor >= RESIZE_BY_POD_SINCE ? effective.keys() : podLevel.keys();
    for (const name of names) if (isPodLevel(name)) requests.set(name, effective.get(name) ?? 0n);
  }
  add(requests, listOf(at(pod, "spec", "overhead")));
  return new Map([...requests].map(([name, nanos]) => [name, amountOf(name, nanos)]));
}

/** The amounts of a list of resources, such as a node's allocatable. */
export function amountsOf(list: Json | undefined): Amounts {
  return new Map([...(listOf(list) ?? [])].map(([name, nanos]) => [name, amountOf(name, nanos)]));
}

function amountOf(name: string, nanos: bigint): number {
  return wholeUnits(nanos, name === "cpu" ? MILLI : ONE) ?? Number.NaN;
}

function isPodLevel(name: string): boolean {
  return name === "cpu" || name === "memory" || name.startsWith("hugepages-");
}

type Read = (container: Json) => ResourceList | undefined;

const specRequests: Read = (container) => listOf(at(container, "resources", "requests"));

function containerRequests(pod: JsonObject, { minor, placed }: RequestFeatures): ResourceList {
  if (!placed || !hasStatus(pod)) return sumOf(pod, specRequests, specRequests);
  const statuses = new Map<string, Json>();
  for (const field of ["initContainerStatuses", "containerStatuses"])
    for (const status of listAt(pod, "status", field)) statuses.set(stringAt(status, "name") ?? "", status);
  const statusOf = (container: Json): Json | undefined => statuses.get(stringAt(container, "name") ?? "");
  const infeasible = isResizeInfeasible(pod);
  if (minor < RESIZE_BY_POD_SINCE) {
    const effective: Read = (container) => {
      const status = statusOf(container);
      if (!isObject(own(status, "resources"))) return specRequests(container);
      return largest([
        infeasible ? undefined : specRequests(container),
        listOf(at(status, "resources", "requests")),
        listOf(own(status, "allocatedResources")),
      ]);
    };
    return sumOf(pod, effective, (container) =>
      isSidecar(container) ? effective(container) : specRequests(container),
    );
  }
  const spec = sumOf(pod, specRequests, specRequests);
  const podAllocated = listOf(at(pod, "status", "allocatedResources"));
  const podActuated = listOf(at(pod, "status", "resources", "requests"));
  const fallback: Read = (container) => (infeasible ? undefined : specRequests(container));
  const allocatedOf: Read = (container) =>
    listOf(own(statusOf(container), "allocatedResources")) ?? fallback(container);
  const actuatedOf: Read = (container) =>
    listOf(at(statusOf(container), "resources", "requests")) ?? allocatedOf(container);
  const [allocated, actuated] =
    podAllocated !== undefined && podActuated !== undefined
      ? [podAllocated, podActuated]
      : [sumOf(pod, allocatedOf, allocatedOf), sumOf(pod, actuatedOf, actuatedOf)];
  return largest([infeasible ? undefined : spec, actuated, allocated]);
}

function hasStatus(pod: JsonObject): boolean {
  return isObject(own(pod, "status"));
}

function isResizeInfeasible(pod: JsonObject): boolean {
  const pending = listAt(pod, "status", "conditions").find((one) => own(one, "type") === "PodResizePending");
  return own(pending, "reason") === "Infeasible";
}

export function isSidecar(container: Json): boolean {
  return own(container, "restartPolicy") === "Always";
}

/** Containers and sidecars add up; an init container runs beside the sidecars before it; the larger of both counts. */
function sumOf(pod: JsonObject, read: Read, readInit: Read): ResourceList {
  const running: ResourceList = new Map();
  for (const container of listAt(pod, "spec", "containers")) add(running, read(container));
  const sidecars: ResourceList = new Map();
  const starting: ResourceList = new Map();
  for (const container of listAt(pod, "spec", "initContainers")) {
    const requests = readInit(container);
    if (isSidecar(container)) {
      add(running, requests);
      add(sidecars, requests);
      raise(starting, sidecars);
    } else {
      const together = new Map(sidecars);
      add(together, requests);
      raise(starting, together);
    }
  }
  raise(running, starting);
  return running;
}

/** `undefined` if there is no list; Kubernetes distinguishes an absent list from an empty one. */
function listOf(value: Json | undefined): ResourceList | undefined {
  if (!isObject(value)) return undefined;
  const list: ResourceList = new Map();
  for (const [name, quantity] of Object.entries(value))
    if (quantity !== undefined && quantity !== null) list.set(name, parseQuantity(quantity) ?? UNREADABLE);
  return list;
}

function add(list: ResourceList, more: ResourceList | undefined): void {
  if (more === undefined) return;
  for (const [name, quantity] of more) list.set(name, (list.get(name) ?? 0n) + quantity);
}

function raise(list: ResourceList, other: ResourceList): void {
  for (const [name, quantity] of other) {
    const known = list.get(name);
    if (known === undefined || quantity > known) list.set(name, quantity);
  }
}

function largest(lists: readonly (ResourceList | undefined)[]): ResourceList {
  const result: ResourceList = new Map();
  for (const list of lists) if (list !== undefined) raise(result, list);
  return result;
}
