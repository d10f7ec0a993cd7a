import { type AdmissionRequest, resourceName } from "../decision/request.ts";
import type { JsonObject } from "../json.ts";
import { nameOf, namespaceOf } from "../kubernetes/object.ts";
import type { WorkloadKind } from "../kubernetes/workloads.ts";
import { type Decided, type Difference, differenceOf, judgeBoth } from "./compare.ts";
import {
  type NodeReach,
  openNodes,
  Placements,
  poolsOf,
  type ReachDifference,
  reachDifference,
} from "./node-reach.ts";
import { nodeDifferences, type StandingDifference, violationDifferences } from "./standing-differences.ts";
import { requestFor, storedWorkloads } from "./stored-workloads.ts";
import type { World } from "./world.ts";

/** How one workload fares in two worlds. */
export interface WorkloadDifference extends Difference {
  /** Pods that it has now. */
  readonly pods: number;
  /** Where its pods may run; absent if nothing was simulated. */
  readonly nodes?: ReachDifference;
}

/** A pool of nodes, and how many workloads may run there. */
export interface PoolDifference {
  readonly pool: string;
  readonly nodes: { readonly before: number; readonly after: number };
  readonly workloads: { readonly before: number; readonly after: number };
  readonly effect: "empties" | "fills" | "changed";
}

/** The effect of an edit; the JSON output is built from it. */
export interface Foresight {
  /** Workloads that differ, the worst first. */
  readonly workloads: readonly WorkloadDifference[];
  readonly nodes: readonly StandingDifference[];
  readonly users: readonly StandingDifference[];
  readonly pools: readonly PoolDifference[];
  /** Workloads with running pods that would not be admitted in the second world, also if the first refuses them as well. */
  readonly notAdmitted: readonly { readonly object: Difference["object"]; readonly pods: number }[];
  /** The scope. */
  readonly looked: { readonly workloads: number; readonly pods: number; readonly nodes: number };
  /** Objects whose decision needed facts that could not be read. */
  readonly unknown: readonly string[];
}

export interface ForesightOptions {
  readonly now: number;
  /** Only workloads of this namespace. @default all */
  readonly namespace?: string | undefined;
  /** Whether to simulate where pods may run. */
  readonly placements: boolean;
  readonly poolLabel?: string | undefined;
  readonly priorityClasses: readonly JsonObject[];
  /** Objects of the second world that are manifests, not stored objects. @default none */
  readonly written?: ReadonlySet<JsonObject>;
  readonly progress?: (done: number, total: number) => void;
  /** Called with both decisions about each workload that differs: for manifests. */
  readonly decided?: (difference: WorkloadDifference, decided: Decided) => void;
}

/** Evaluates all objects of either world in both, and returns the differences. Both are reconciled worlds. */
export async function foresee(before: World, after: World, options: ForesightOptions): Promise<Foresight> {
  const pairs = pairsOf(before, after, options);
  const [old, now] = options.placements ? [new Placements(before), new Placements(after)] : [];
  const workloads: WorkloadDifference[] = [];
  const notAdmitted: { object: Difference["object"]; pods: number }[] = [];
  const unknown = new Set<string>();
  const reached = { before: new Map<string, number>(), after: new Map<string, number>() };
  const pools = { before: poolsOf(before, options.poolLabel), after: poolsOf(after, options.poolLabel) };
  for (const [done, { requests, pods }] of pairs.entries()) {
    options.progress?.(done, pairs.length);
    const decided = await judgeBoth(requests, { before, after }, options);
    const difference = differenceOf(decided);
    const { kind } = difference.object;
    for (const side of [difference.before, difference.after])
      for (const one of side?.unknown ?? []) unknown.add(one);
    const feasible = {
      before: old?.of(decided.before?.pod, kind, pods),
      after: now?.of(decided.after?.pod, kind, pods),
    };
    const nodes = old === undefined ? undefined : reachDifference(feasible.before, feasible.after);
    for (const side of ["before", "after"] as const)
      for (const pool of new Set(
        [...openNodes(feasible[side])].flatMap((node) => pools[side].get(node) ?? []),
      ))
        reached[side].set(pool, (reached[side].get(pool) ?? 0) + 1);
    if (difference.after?.refused && pods.length > 0)
      notAdmitted.push({ object: difference.object, pods: pods.length });
    const whole = { ...difference, pods: pods.length, ...(nodes === undefined ? {} : { nodes }) };
    if (isSame(whole)) continue;
    workloads.push(whole);
    options.decided?.(whole, decided);
  }
  return {
    workloads: workloads.sort((a, b) => rankOf(a) - rankOf(b)),
    nodes: nodeDifferences(before, after),
    users: violationDifferences(before, after),
    pools: options.placements ? poolDifferences(pools, reached) : [],
    notAdmitted,
    looked: {
      workloads: pairs.length,
      pods: pairs.reduce((sum, { pods }) => sum + pods.length, 0),
      nodes: new Set([...before.list("nodes"), ...after.list("nodes")].map(nameOf)).size,
    },
    unknown: [...unknown],
  };
}

/** Whether anything differs. */
export function isEmpty({ workloads, nodes, users, pools }: Foresight): boolean {
  return workloads.length + nodes.length + users.length + pools.length === 0;
}

/** Whether the pods of a workload fit nowhere in the second world, and did in the first, or are new. */
export function fitsNowhere({ after, before, nodes }: WorkloadDifference): boolean {
  if (after?.refused !== false || nodes?.after === undefined || hasRoom(nodes.after)) return false;
  return before?.refused !== false || nodes.before === undefined || hasRoom(nodes.before);
}

function hasRoom({ fits, unknown }: NodeReach): boolean {
  return fits + unknown > 0;
}

interface Pair {
  readonly requests: { readonly before?: AdmissionRequest; readonly after?: AdmissionRequest };
  readonly pods: readonly JsonObject[];
}

/** Every workload of either world, with the requests that create it in each. */
function pairsOf(
  before: World,
  after: World,
  { namespace, priorityClasses, written }: ForesightOptions,
): Pair[] {
  const pairs = new Map<
    string,
    { before?: AdmissionRequest; after?: AdmissionRequest; pods: readonly JsonObject[] }
  >();
  const collect = (world: World, side: "before" | "after") => {
    for (const { workload, object, pods } of storedWorkloads(world, namespace)) {
      const key = keyOf(workload, object);
      const pair = pairs.get(key) ?? { pods };
      pair[side] = requestFor(object, workload, { priorityClasses, written: written?.has(object) === true });
      pairs.set(key, pair);
    }
  };
  collect(before, "before");
  collect(after, "after");
  return [...pairs.values()].map(({ pods, ...requests }) => ({ pods, requests }));
}

function keyOf(workload: WorkloadKind, object: JsonObject): string {
  return `${resourceName(workload)} ${namespaceOf(object)}/${nameOf(object)}`;
}

function isSame({ effect, nodes }: WorkloadDifference): boolean {
  return effect === "same" && (nodes === undefined || nodes.gained.length + nodes.lost.length === 0);
}

const RANKS = ["refused", "nowhere", "admitted", "still refused", "changed", "same", "warned", "new", "gone"];

function rankOf(difference: WorkloadDifference): number {
  return RANKS.indexOf(fitsNowhere(difference) ? "nowhere" : difference.effect);
}

type Sides<Value> = { readonly before: Value; readonly after: Value };

function poolDifferences(
  pools: Sides<ReadonlyMap<string, string>>,
  reached: Sides<ReadonlyMap<string, number>>,
): PoolDifference[] {
  const count = (map: ReadonlyMap<string, string>, pool: string) =>
    [...map.values()].filter((one) => one === pool).length;
  const names = new Set([...pools.before.values(), ...pools.after.values()]);
  return [...names].sort().flatMap((pool): PoolDifference[] => {
    const nodes = { before: count(pools.before, pool), after: count(pools.after, pool) };
    const workloads = { before: reached.before.get(pool) ?? 0, after: reached.after.get(pool) ?? 0 };
    if (nodes.before === nodes.after && workloads.before === workloads.after) return [];
    const empties = workloads.before > 0 && workloads.after === 0;
    const fills = workloads.before === 0 && workloads.after > 0;
    return [{ pool, nodes, workloads, effect: empties ? "empties" : fills ? "fills" : "changed" }];
  });
}
