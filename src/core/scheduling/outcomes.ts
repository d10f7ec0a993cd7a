// Runs the filters on every node, as the scheduler's cycle does up to the scores.
import { at, type JsonObject, stringAt } from "../json.ts";
import type { FilterFailure, FilterName, FilterOutcome, Unknown } from "./filter.ts";
import { unresolvable } from "./filter.ts";
import { priorityOf } from "./placed-pods.ts";
import type { PreparedWorld } from "./prepared-world.ts";

export interface Outcomes {
  /** By node. */
  readonly outcomes: readonly FilterOutcome[];
  /** Where the pod was rejected before any node was looked at. */
  readonly rejection: FilterFailure | undefined;
  /** Nodes on which preemption could change the outcome. */
  readonly couldPreempt: readonly number[];
}

export function outcomesOf(pod: JsonObject, world: PreparedWorld): Outcomes {
  const filters: { readonly judge: (node: number) => FilterOutcome }[] = [];
  let rejection: FilterFailure | undefined;
  let nodeNames: ReadonlySet<string> | undefined;
  const narrowing: FilterName[] = [];
  for (const filter of world.filters) {
    const answer = filter.forPod(pod, world);
    if (answer.kind === "unknown") filters.push({ judge: () => answer });
    else if (answer.kind === "fails") {
      // Of several rejections that preemption could change the last counts; one that it could not change ends the cycle.
      rejection = answer;
      if (!answer.resolvable) break;
    } else if (answer.kind === "filters") {
      filters.push(answer);
      if (answer.nodeNames === undefined) continue;
      narrowing.push(filter.name);
      nodeNames = nodeNames === undefined ? answer.nodeNames : nodeNames.intersection(answer.nodeNames);
      if (nodeNames.size > 0) continue;
      rejection = unresolvable(narrowing.toSorted()[0] ?? filter.name, noneLeft(narrowing));
      break;
    }
  }
  const { names } = world.nodes;
  if (rejection !== undefined) return { outcomes: names.map(() => rejection), rejection, couldPreempt: [] };
  const left = unresolvable(
    narrowing.toSorted()[0] ?? "NodeAffinity",
    `node(s) didn't satisfy plugin(s) [${narrowing.toSorted().join(" ")}]`,
  );
  const outcomes = names.map((name, node) => {
    if (nodeNames !== undefined && !nodeNames.has(name)) return left;
    let unknown: Unknown | undefined;
    for (const { judge } of filters) {
      const outcome = judge(node);
      if (outcome?.kind === "fails") return outcome;
      unknown ??= outcome;
    }
    return unknown;
  });
  return { outcomes, rejection, couldPreempt: preemptible(pod, outcomes, world) };
}

/** Nodes whose failure the removal of pods could change, and that have a pod of a lower priority. */
function preemptible(
  pod: JsonObject,
  outcomes: readonly FilterOutcome[],
  { placed }: PreparedWorld,
): number[] {
  if (placed === undefined || at(pod, "spec", "preemptionPolicy") === "Never") return [];
  // Before admission a pod has the name of its priority class alone.
  const isOpen =
    at(pod, "spec", "priority") === undefined && (stringAt(pod, "spec", "priorityClassName") ?? "") !== "";
  const priority = isOpen ? Number.POSITIVE_INFINITY : priorityOf(pod);
  const found: number[] = [];
  for (const [node, outcome] of outcomes.entries()) {
    if (outcome?.kind !== "fails" || !outcome.resolvable) continue;
    if ((placed.lowestPriority[node] ?? Number.POSITIVE_INFINITY) < priority) found.push(node);
  }
  return found;
}

function noneLeft(narrowing: readonly FilterName[]): string {
  if (narrowing.length === 1) return `node(s) didn't satisfy plugin ${narrowing[0]}`;
  return `node(s) didn't satisfy plugin(s) [${narrowing.toSorted().join(" ")}] simultaneously`;
}
