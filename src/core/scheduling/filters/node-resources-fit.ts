import type { JsonObject } from "../../json.ts";
import { checkQualifiedName } from "../../kubernetes/names.ts";
import { type Filter, type FilterOutcome, resolvable, unknown, unresolvable } from "../filter.ts";
import { podRequests } from "../pod-requests.ts";
import type { PreparedWorld } from "../prepared-world.ts";

/** The reasons come in this order. */
const FIRST: readonly string[] = ["cpu", "memory", "ephemeral-storage"];
/** The version since which device classes may provide extended resources. */
const DEVICE_CLASSES_SINCE = 36;
/** The version since which a request beyond a node's capacity can't be resolved by preemption. */
const NEVER_SINCE = 34;

interface Wanted {
  readonly name: string;
  readonly amount: number;
  readonly reason: string;
  /** Whether a device class provides the resource on nodes that do not have it. */
  readonly byDevices: boolean | "unknown";
  readonly allocatable: Float64Array;
  readonly requested: Float64Array | undefined;
}

/** Whether a node has capacity for one more pod, and for the pod's requests. A request of 0 always fits. */
export const NODE_RESOURCES_FIT: Filter = {
  name: "NodeResourcesFit",
  forPod: (pod: JsonObject, world: PreparedWorld) => {
    const wanted = wantedBy(pod, world);
    const { placed } = world;
    const podLimit = world.nodes.allocatable("pods");
    // Nodes that lack the same resources share one outcome.
    const known = new Map<string, FilterOutcome>();
    const judge = (node: number): FilterOutcome => {
      const reasons: string[] = [];
      let [never, open] = [false, ""];
      const limit = podLimit[node] ?? 0;
      if (Number.isNaN(limit)) open = "pods";
      else if ((placed?.counts[node] ?? 0) + 1 > limit) reasons.push("Too many pods");
      for (const one of wanted) {
        const capacity = one.allocatable[node] ?? 0;
        const used = one.requested?.[node] ?? 0;
        if (one.byDevices !== false && !(capacity > 0)) {
          open ||= one.byDevices === "unknown" ? "device classes" : one.name;
          continue;
        }
        const free = capacity - used;
        if (Number.isNaN(free) || Number.isNaN(one.amount)) open ||= one.name;
        else if (one.amount > free) {
          reasons.push(one.reason);
          never ||= world.minor >= NEVER_SINCE && one.amount > capacity;
        }
      }
      if (reasons.length === 0 && open === "" && placed === undefined) open = "placed pods";
      if (reasons.length === 0 && open === "") return undefined;
      const key = `${open}\0${never}\0${reasons.join("\0")}`;
      if (!known.has(key)) known.set(key, outcomeOf(reasons, never, open));
      return known.get(key);
    };
    return { kind: "filters", judge };
  },
};

function outcomeOf(reasons: readonly string[], never: boolean, open: string): FilterOutcome {
  if (reasons.length > 0) return (never ? unresolvable : resolvable)("NodeResourcesFit", ...reasons);
  if (open === "placed pods") return unknown("NodeResourcesFit", "the pods of the nodes are not in the view");
  if (open === "device classes")
    return unknown(
      "NodeResourcesFit",
      "a device class could provide the resource, and they are not in the view",
    );
  return unknown("NodeResourcesFit", `the amount of ${open} on the node is not known`);
}

function wantedBy(pod: JsonObject, world: PreparedWorld): readonly Wanted[] {
  const requests = podRequests(pod, { minor: world.minor, placed: false });
  const others = [...requests.keys()].filter((name) => !FIRST.includes(name) && isScalar(name)).sort();
  const wanted: Wanted[] = [];
  for (const name of [...FIRST, ...others]) {
    const amount = requests.get(name) ?? 0;
    if (amount === 0 || amount < 0) continue;
    wanted.push({
      name,
      amount,
      reason: `Insufficient ${name}`,
      byDevices: byDevices(name, world),
      allocatable: world.nodes.allocatable(name),
      requested: world.placed?.requested.get(name),
    });
  }
  return wanted;
}

function byDevices(name: string, { minor, deviceResources }: PreparedWorld): boolean | "unknown" {
  if (minor < DEVICE_CLASSES_SINCE || FIRST.includes(name) || !isExtended(name)) return false;
  return deviceResources === undefined ? "unknown" : deviceResources.has(name);
}

/** Resources that the scheduler counts beside CPU, memory and ephemeral storage. */
function isScalar(name: string): boolean {
  return (
    isExtended(name) ||
    name.startsWith("hugepages-") ||
    name.includes("kubernetes.io/") ||
    name.startsWith("attachable-volumes-")
  );
}

function isExtended(name: string): boolean {
  if (!name.includes("/") || name.includes("kubernetes.io/") || name.startsWith("requests.")) return false;
  return checkQualifiedName(`requests.${name}`) === undefined;
}
