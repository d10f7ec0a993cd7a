import { at, type Json, type JsonObject, listAt, own } from "../../json.ts";
import { labelsOf, namespaceOf } from "../../kubernetes/object.ts";
import {
  type CompiledSelector,
  compileSelector,
  matches,
} from "../../kubernetes/selectors/label-selector.ts";
import { type Filter, resolvable, SKIPS, unknown, unresolvable } from "../filter.ts";
import { GATED_TOLERATION, placementMatcher, toleranceOf } from "../node-matchers.ts";
import type { NodeTable } from "../node-table.ts";
import type { LabelClass } from "../placed-pods.ts";
import { labelKeyRequirements, narrowed } from "../pod-affinity-terms.ts";
import type { PreparedWorld } from "../prepared-world.ts";

const SKEWED = resolvable("PodTopologySpread", "node(s) didn't match pod topology spread constraints");
const NO_LABEL = unresolvable(
  "PodTopologySpread",
  "node(s) didn't match pod topology spread constraints (missing required label)",
);

interface Constraint {
  readonly topologyKey: string;
  readonly maxSkew: number;
  readonly minDomains: number;
  readonly selector: CompiledSelector;
  readonly honorsAffinity: boolean;
  readonly honorsTaints: boolean;
}

/** ScheduleAnyway constraints, including the scheduler's own defaults, only score. */
export const POD_TOPOLOGY_SPREAD: Filter = {
  name: "PodTopologySpread",
  forPod: (pod: JsonObject, world: PreparedWorld) => {
    const constraints: Constraint[] = [];
    for (const item of listAt(pod, "spec", "topologySpreadConstraints")) {
      if (own(item, "whenUnsatisfiable") !== "DoNotSchedule") continue;
      const constraint = compileConstraint(item, pod);
      if (constraint === undefined)
        return unknown("PodTopologySpread", "a topology spread constraint can't be read");
      constraints.push(constraint);
    }
    if (constraints.length === 0) return SKIPS;
    if (world.placed === undefined)
      return unknown("PodTopologySpread", "the pods of the nodes are not in the view");
    const tolerance = toleranceOf(listAt(pod, "spec", "tolerations"), world.nodes, world.minor);
    const honorsTaints = constraints.some((constraint) => constraint.honorsTaints);
    if (honorsTaints && world.nodes.names.some((_, node) => tolerance(node) === "gated"))
      return unknown("PodTopologySpread", GATED_TOLERATION);
    const placed = world.placed.byLabels.get(namespaceOf(pod)) ?? [];
    const judges = spread(constraints, pod, placed, world.nodes, (node) => tolerance(node) === "tolerated");
    return {
      kind: "filters",
      judge: (node) => {
        for (const judge of judges) {
          const outcome = judge(node);
          if (outcome !== undefined) return outcome;
        }
        return undefined;
      },
    };
  },
};

function compileConstraint(item: Json, pod: JsonObject): Constraint | undefined {
  const topologyKey = own(item, "topologyKey");
  const maxSkew = own(item, "maxSkew");
  const minDomains = own(item, "minDomains") ?? 1;
  const { selector, problems } = compileSelector(own(item, "labelSelector"), []);
  if (typeof topologyKey !== "string" || typeof maxSkew !== "number" || typeof minDomains !== "number")
    return undefined;
  if (problems.length > 0) return undefined;
  const keys = labelKeyRequirements(listAt(item, "matchLabelKeys"), labelsOf(pod), "In");
  return {
    topologyKey,
    maxSkew,
    minDomains,
    selector: narrowed(selector, keys),
    honorsAffinity: (own(item, "nodeAffinityPolicy") ?? "Honor") === "Honor",
    honorsTaints: own(item, "nodeTaintsPolicy") === "Honor",
  };
}

type Judge = (node: number) => typeof SKEWED | undefined;

function spread(
  constraints: readonly Constraint[],
  pod: JsonObject,
  placed: readonly LabelClass[],
  nodes: NodeTable,
  isTolerated: (node: number) => boolean,
): readonly Judge[] {
  const matchesAffinity = placementMatcher(at(pod, "spec"), nodes);
  const columns = constraints.map(({ topologyKey }) => nodes.label(topologyKey));
  /** Only nodes that have the keys of all constraints count for any of them. */
  const hasKeys = (node: number): boolean =>
    columns.every(({ classes, values }) => values[classes[node] ?? 0] !== undefined);
  return constraints.map((constraint, i) => {
    const { classes, values } = columns[i] ?? nodes.label(constraint.topologyKey);
    const counts = new Float64Array(values.length).fill(Number.NaN);
    const counted = new Uint8Array(nodes.count);
    for (let node = 0; node < nodes.count; node++) {
      if (!hasKeys(node)) continue;
      if (constraint.honorsAffinity && !matchesAffinity(node)) continue;
      if (constraint.honorsTaints && !isTolerated(node)) continue;
      counted[node] = 1;
      const domain = classes[node] ?? 0;
      if (Number.isNaN(counts[domain])) counts[domain] = 0;
    }
    // A selector without requirements counts no pods, although the pod itself matches it.
    if (constraint.selector.kind === "requirements") {
      for (const { labels, nodes: on } of placed) {
        if (!matches(constraint.selector, labels)) continue;
        for (const node of on) {
          const domain = classes[node] ?? 0;
          if (counted[node] === 1) counts[domain] = (counts[domain] ?? 0) + 1;
        }
      }
    }
    const domains = counts.filter((count) => !Number.isNaN(count));
    const least = domains.length < constraint.minDomains ? 0 : minimum(domains);
    const self = matches(constraint.selector, labelsOf(pod)) ? 1 : 0;
    const outcomes = values.map((value, domain) => {
      if (value === undefined) return NO_LABEL;
      const count = counts[domain] ?? 0;
      const skew = (Number.isNaN(count) ? 0 : count) + self - least;
      return skew > constraint.maxSkew ? SKEWED : undefined;
    });
    return (node) => outcomes[classes[node] ?? 0];
  });
}

/** If no node counts the scheduler starts from the largest 32-bit integer. */
const NO_DOMAIN = 2 ** 31 - 1;

function minimum(counts: Float64Array): number {
  return counts.reduce((least, count) => Math.min(least, count), NO_DOMAIN);
}
