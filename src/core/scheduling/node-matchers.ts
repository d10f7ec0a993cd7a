// Questions about nodes that several filters share: each value of a label and each set of taints is evaluated once.
import { type Json, own } from "../json.ts";
import {
  compilePodPlacement,
  meetsNodeRequirement,
  type NodeTerm,
} from "../kubernetes/selectors/node-selector.ts";
import type { Taint } from "../kubernetes/taints.ts";
import { toleratesAll } from "../kubernetes/tolerations.ts";
import type { NodeTable } from "./node-table.ts";

type Matcher = (node: number) => boolean;

/** Whether a node has the labels of nodeSelector and matches the required node affinity. */
export function placementMatcher(podSpec: Json | undefined, nodes: NodeTable): Matcher {
  const { nodeSelector, terms } = compilePodPlacement(podSpec);
  if (nodeSelector === undefined) return () => false;
  const labels = nodeSelector.map(([key, wanted]) => labelMatcher(nodes, key, (value) => value === wanted));
  const affinity = terms === undefined ? undefined : termsMatcher(terms, nodes);
  if (labels.length === 0) return affinity ?? (() => true);
  return (node) => labels.every((label) => label(node)) && (affinity === undefined || affinity(node));
}

/** Whether a node matches one of the terms. */
export function termsMatcher(terms: readonly NodeTerm[], nodes: NodeTable): Matcher {
  const matchers = terms.map((term): Matcher => {
    if (term.kind !== "usable") return () => false;
    const labels = term.labels.map((requirement) =>
      labelMatcher(nodes, requirement.key, (value) => meetsNodeRequirement(requirement, value)),
    );
    const { names } = term;
    return (node) =>
      labels.every((label) => label(node)) &&
      names.every(({ operator, name }) => (operator === "In") === (name === nodes.names[node]));
  });
  return (node) => matchers.some((matcher) => matcher(node));
}

export function labelMatcher(
  nodes: NodeTable,
  key: string,
  accepts: (value: string | undefined) => boolean,
): Matcher {
  const { classes, values } = nodes.label(key);
  const accepted = values.map(accepts);
  return (node) => accepted[classes[node] ?? 0] === true;
}

/** "gated" if only a numeric comparison tolerates a taint: those count with a feature gate that is off by default. */
export type Tolerance = "tolerated" | "untolerated" | "gated";

/** The version since which tolerations have comparisons. */
const COMPARISONS_SINCE = 35;

/** Whether the taints that keep pods off a node are tolerated. */
export function toleranceOf(
  tolerations: readonly Json[],
  nodes: NodeTable,
  minor: number,
): (node: number) => Tolerance {
  const plain = plainOf(tolerations);
  const all = minor >= COMPARISONS_SINCE ? tolerations : plain;
  return byTaints(nodes, (taints) => {
    if (toleratesAll(plain, taints)) return "tolerated";
    return toleratesAll(all, taints) ? "gated" : "untolerated";
  });
}

/** The first taint that keeps a pod off a node, by tolerations that compare no numbers. */
export function firstUntolerated(tolerations: readonly Json[], taints: readonly Taint[]): Taint | undefined {
  const plain = plainOf(tolerations);
  return taints.find((taint) => !toleratesAll(plain, [taint]));
}

/** Nodes with the same taints are judged once. */
export function byTaints<Outcome>(
  { taints: { classes, values } }: NodeTable,
  judge: (taints: readonly Taint[]) => Outcome,
): (node: number) => Outcome {
  const found = values.map(judge);
  return (node) => found[classes[node] as number] as Outcome;
}

function plainOf(tolerations: readonly Json[]): Json[] {
  return tolerations.filter((toleration) => !COMPARISONS.has(own(toleration, "operator")));
}

const COMPARISONS: ReadonlySet<Json | undefined> = new Set(["Gt", "Lt"]);

export const GATED_TOLERATION =
  "a toleration compares numbers, which counts only with the feature gate TaintTolerationComparisonOperators";
