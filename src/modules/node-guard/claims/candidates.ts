import { type Json, type JsonObject, listAt } from "../../../core/json.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { labelValue, matches, requiredLabels } from "../../../core/kubernetes/selectors/label-selector.ts";
import {
  compilePodPlacement,
  matchesNode,
  type PodPlacement,
} from "../../../core/kubernetes/selectors/node-selector.ts";
import { describeTaint, taintsOf } from "../../../core/kubernetes/taints.ts";
import { toleratesAll } from "../../../core/kubernetes/tolerations.ts";
import type { Index, View } from "../../../core/view/view.ts";
import type { Group } from "../groups/group.ts";
import { usableTerms } from "./implied.ts";
import { TermIndex } from "./term-index.ts";

/** Nodes by the keys of their labels: the nodes of a group are found without a look at all others. */
export const NODES_BY_LABEL: Index = {
  name: "node-guard-label",
  values: (node) => Object.keys(labelsOf(node) ?? {}),
};

/** The known nodes of a group. */
export function* nodesOf({ labelSelector }: Pick<Group, "labelSelector">, view: View): Iterable<JsonObject> {
  const [required] = requiredLabels(labelSelector);
  const some =
    required === undefined ? view.list("nodes") : view.lookup("nodes", NODES_BY_LABEL.name, required.key);
  for (const node of some) if (matches(labelSelector, labelsOf(node))) yield node;
}

/** The groups that a node belongs to. */
export function groupsOfNode<G extends Pick<Group, "labelSelector">>(
  groups: readonly G[],
  node: JsonObject,
): G[] {
  const labels = labelsOf(node);
  return groups.filter(({ labelSelector }) => matches(labelSelector, labels));
}

/**
 * Requirements that may be compared for one pod: some 30 ms. Beyond it nothing is claimed early, and the bind decides. Only terms that
 * require no value of any label come near it, many times for many nodes.
 */
const STEPS = 500_000;

/** Which nodes a pod's nodeSelector and required affinity select. Taints do not count: they come and go. */
export class Selection {
  readonly placement: PodPlacement;
  readonly #terms: TermIndex | undefined;
  #left = STEPS;

  constructor(podSpec: Json | undefined) {
    this.placement = compilePodPlacement(podSpec);
    const { terms } = this.placement;
    this.#terms = terms === undefined ? undefined : new TermIndex(usableTerms(terms));
  }

  /** Whether the pod says anything about nodes. */
  get constrained(): boolean {
    return this.placement.terms !== undefined || this.placement.nodeSelector?.length !== 0;
  }

  /** Whether too much was compared already: `selects` then says no more than a guess. */
  get exhausted(): boolean {
    return this.#left < 0;
  }

  selects(node: JsonObject): boolean {
    const { nodeSelector } = this.placement;
    if (nodeSelector === undefined) return false;
    const labels = labelsOf(node);
    for (const [key, value] of nodeSelector) {
      this.#left--;
      if (labelValue(labels, key) !== value) return false;
    }
    if (this.#terms === undefined) return true;
    const candidate = { name: nameOf(node), labels };
    for (const terms of this.#terms.candidates(candidate.name, labels)) {
      this.#left -= terms.length + 1;
      if (terms.length > 0 && matchesNode(terms, candidate)) return true;
    }
    return false;
  }
}

/** Which nodes the scheduler would consider for a pod: they are selected, and their taints are tolerated. */
export class Feasibility {
  readonly selection: Selection;
  readonly #tolerations: readonly Json[];
  /** Nodes of a group are mostly tainted alike. */
  readonly #tolerated = new Map<string, boolean>();

  constructor(podSpec: Json | undefined) {
    this.selection = new Selection(podSpec);
    this.#tolerations = listAt(podSpec, "tolerations");
  }

  wouldTake(node: JsonObject): boolean {
    return this.#tolerates(node) && this.selection.selects(node);
  }

  #tolerates(node: JsonObject): boolean {
    const taints = taintsOf(node);
    if (taints.length === 0) return true;
    const text = taints.map(describeTaint).join();
    const known = this.#tolerated.get(text) ?? toleratesAll(this.#tolerations, taints);
    this.#tolerated.set(text, known);
    return known;
  }
}
