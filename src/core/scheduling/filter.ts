// The contract of a filter: data for the pod first, then one answer per node.
import type { JsonObject } from "../json.ts";
import type { PreparedWorld } from "./prepared-world.ts";

/** As kube-scheduler names its plugins; `Scheduler` for questions that stand before all of them. */
export type FilterName =
  | "SchedulingGates"
  | "NodeName"
  | "NodeUnschedulable"
  | "TaintToleration"
  | "NodeAffinity"
  | "NodePorts"
  | "NodeResourcesFit"
  | "VolumeRestrictions"
  | "NodeVolumeLimits"
  | "VolumeBinding"
  | "VolumeZone"
  | "PodTopologySpread"
  | "InterPodAffinity"
  | "DynamicResources"
  | "NodeDeclaredFeatures"
  | "Scheduler";

/** A filter rejects a node. */
export interface FilterFailure {
  readonly kind: "fails";
  readonly filter: FilterName;
  readonly reasons: readonly string[];
  /** Whether the removal of pods from the node could change it: the scheduler's Unschedulable, not UnschedulableAndUnresolvable. */
  readonly resolvable: boolean;
}

/** The world does not show what the filter needs. */
export interface Unknown {
  readonly kind: "unknown";
  readonly filter: FilterName;
  readonly reason: string;
}

/** `undefined`: the filter passes the node. Filters return one object for all nodes that are alike. */
export type FilterOutcome = FilterFailure | Unknown | undefined;

/** The answer of a filter for one pod. */
export type PodFilter =
  /** Passes every node. */
  | { readonly kind: "skips" }
  /** One outcome for all nodes, as a PreFilter has it: stands before the verdict of every filter on a single node. */
  | FilterFailure
  | Unknown
  | {
      readonly kind: "filters";
      /** The only nodes that the scheduler looks at. */
      readonly nodeNames?: ReadonlySet<string>;
      /** @param node Index of the node in the world. */
      readonly judge: (node: number) => FilterOutcome;
    };

export interface Filter {
  readonly name: FilterName;
  readonly forPod: (pod: JsonObject, world: PreparedWorld) => PodFilter;
}

export const SKIPS: PodFilter = { kind: "skips" };

/** Nothing that happens to other pods changes it. */
export function unresolvable(filter: FilterName, ...reasons: readonly string[]): FilterFailure {
  return { kind: "fails", filter, reasons, resolvable: false };
}

export function resolvable(filter: FilterName, ...reasons: readonly string[]): FilterFailure {
  return { kind: "fails", filter, reasons, resolvable: true };
}

export function unknown(filter: FilterName, reason: string): Unknown {
  return { kind: "unknown", filter, reason };
}
