// Where a pod could run: the filters of kube-scheduler's default profile, judged for every node of a world that does not change. Pure: the
// world is plain data, and so is the answer. Scores, preemption and binding are not simulated; what the world does not show is unknown.

import type { JsonObject } from "../json.ts";
import type { FilterFailure, FilterName, FilterOutcome, Unknown } from "./filter.ts";
import { outcomesOf } from "./outcomes.ts";
import { podClass } from "./pod-class.ts";
import type { PreparedWorld } from "./prepared-world.ts";

export type { FilterName } from "./filter.ts";
export { type PreparedWorld, prepareWorld } from "./prepared-world.ts";
export { releaseOf } from "./releases.ts";

/** The verdict on a node. A node fails by the first filter that rejects it; unknown means that no filter rejects it for certain. */
export type NodeVerdict =
  | { readonly kind: "fits" }
  | {
      readonly kind: "fails";
      readonly filter: FilterName;
      /** The scheduler's reasons joined by commas. */
      readonly reason: string;
      readonly reasons: readonly string[];
    }
  | { readonly kind: "unknown"; readonly filter: FilterName; readonly reason: string };

/** Nodes with the same verdict. */
interface NodeGroup {
  readonly verdict: NodeVerdict;
  /** Names in the order of the world. */
  readonly nodes: readonly string[];
}

export interface Feasibility {
  /** Those that fit first, then the unknown, then the failing; the largest group first. Every node is in one of them. */
  readonly groups: readonly NodeGroup[];
  readonly fits: number;
  readonly unknown: number;
  readonly fails: number;
  /** `0/6 nodes are available: 3 Insufficient cpu, 3 node(s) had untolerated taint(s).` */
  readonly summary: string;
  /** Nodes that fail, and on which the eviction of pods of a lower priority could change that. */
  readonly preemption: readonly string[];
  /** Sentences on what the verdict leaves open: preemption, and everything that is unknown. */
  readonly notes: readonly string[];
}

const FITS: NodeVerdict = { kind: "fits" };

/** Judges one pod on every node of the world. */
export function feasibleNodes(pod: JsonObject, world: PreparedWorld): Feasibility {
  const { outcomes, rejection, couldPreempt } = outcomesOf(pod, world);
  const groups = groupsOf(outcomes, world);
  const count = (kind: NodeVerdict["kind"]): number =>
    groups.reduce((sum, { verdict, nodes }) => sum + (verdict.kind === kind ? nodes.length : 0), 0);
  const preemption = couldPreempt.map((node) => world.nodes.names[node] ?? "");
  return {
    groups,
    fits: count("fits"),
    unknown: count("unknown"),
    fails: count("fails"),
    summary: summaryOf(groups, rejection),
    preemption,
    notes: notesOf(groups, preemption),
  };
}

/** Judges pods of one world, each class once: pods of one template are alike for every filter, and get the same answer. */
export function feasibilityByClass(world: PreparedWorld): (pod: JsonObject) => Feasibility {
  const known = new Map<string, Feasibility>();
  return (pod) => {
    const key = podClass(pod, world);
    const feasibility = known.get(key) ?? feasibleNodes(pod, world);
    known.set(key, feasibility);
    return feasibility;
  };
}

function verdictOf(outcome: FilterOutcome): NodeVerdict {
  if (outcome === undefined) return FITS;
  const { filter } = outcome;
  if (outcome.kind === "unknown") return { kind: "unknown", filter, reason: outcome.reason };
  return { kind: "fails", filter, reason: outcome.reasons.join(", "), reasons: outcome.reasons };
}

const RANK: Readonly<Record<NodeVerdict["kind"], number>> = { fits: 0, unknown: 1, fails: 2 };

function groupsOf(
  outcomes: readonly (FilterFailure | Unknown | undefined)[],
  world: PreparedWorld,
): NodeGroup[] {
  // Filters return one object for all nodes that are alike; two objects of one meaning are joined by their text.
  const byOutcome = new Map<FilterOutcome, string[]>();
  const byText = new Map<string, NodeGroup & { readonly nodes: string[] }>();
  for (const [node, outcome] of outcomes.entries()) {
    let names = byOutcome.get(outcome);
    if (names === undefined) {
      const verdict = verdictOf(outcome);
      const text = verdict.kind === "fits" ? "" : `${verdict.kind}\0${verdict.filter}\0${verdict.reason}`;
      const group = byText.get(text) ?? { verdict, nodes: [] };
      byText.set(text, group);
      names = group.nodes;
      byOutcome.set(outcome, names);
    }
    names.push(world.nodes.names[node] ?? "");
  }
  return [...byText.values()].sort(
    (a, b) => RANK[a.verdict.kind] - RANK[b.verdict.kind] || b.nodes.length - a.nodes.length,
  );
}

function notesOf(groups: readonly NodeGroup[], preemption: readonly string[]): string[] {
  const notes: string[] = [];
  for (const { verdict, nodes } of groups)
    if (verdict.kind === "unknown") notes.push(`unknown for ${nodeCount(nodes.length)}: ${verdict.reason}`);
  if (preemption.length > 0) {
    notes.push(
      `preemption is not simulated: evicting pods of a lower priority could make room on ${nodeCount(preemption.length)}`,
    );
  }
  return notes;
}

function nodeCount(count: number): string {
  return count === 1 ? "1 node" : `${count} nodes`;
}

// One line on a pod, as kube-scheduler writes it into the condition PodScheduled.

/**
 * Counts by reason, sorted as text, as the scheduler does; a node with two reasons counts for both. A pod that is rejected before any
 * node was looked at has that reason alone.
 */
function summaryOf(groups: readonly NodeGroup[], rejection: FilterFailure | undefined): string {
  let [all, fits] = [0, 0];
  const counts = new Map<string, number>();
  const add = (reason: string, count: number): unknown =>
    counts.set(reason, (counts.get(reason) ?? 0) + count);
  for (const { verdict, nodes } of groups) {
    all += nodes.length;
    if (verdict.kind === "fits") fits += nodes.length;
    else if (verdict.kind === "unknown") add(`unknown (${verdict.reason})`, nodes.length);
    else for (const reason of verdict.reasons) add(reason, nodes.length);
  }
  const available = `${fits}/${all} nodes are available`;
  if (rejection !== undefined) return `${available}: ${rejection.reasons.join(", ")}.`;
  if (counts.size === 0) return `${available}.`;
  const reasons = [...counts].map(([reason, count]) => `${count} ${reason}`).sort();
  return `${available}: ${reasons.join(", ")}.`;
}
