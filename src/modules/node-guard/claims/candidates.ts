import { type Json, type JsonObject, listAt } from "../../../core/json.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { matches, requiredLabels } from "../../../core/kubernetes/selectors/label-selector.ts";
import {
  compilePodPlacement,
  matchesPlacement,
  type PodPlacement,
} from "../../../core/kubernetes/selectors/node-selector.ts";
import { taintsOf } from "../../../core/kubernetes/taints.ts";
import { toleratesAll } from "../../../core/kubernetes/tolerations.ts";
import type { Index, View } from "../../../core/view/view.ts";
import type { Group } from "../groups/group.ts";

/** Nodes by the keys of their labels: the nodes of a group are found without a look at all others. */
export const NODES_BY_LABEL: Index = {
  name: "label",
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
 * Requirements that may be compared for one pod: 10,000 nodes by 50 terms of two requirements, some 30 ms. Beyond it nothing is claimed
 * early, and the bind decides.
 */
const STEPS = 1_000_000;

/** Which nodes a pod's nodeSelector and required affinity select. Taints do not count: they come and go. */
export class Selection {
  readonly placement: PodPlacement;
  readonly #cost: number;
  #left = STEPS;

  constructor(podSpec: Json | undefined) {
    this.placement = compilePodPlacement(podSpec);
    const { nodeSelector = [], terms = [] } = this.placement;
    this.#cost = 1 + nodeSelector.length + terms.length;
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
    this.#left -= this.#cost;
    return matchesPlacement(this.placement, { name: nameOf(node), labels: labelsOf(node) });
  }
}

/** Whether the scheduler would consider the node for the pod: it is selected, and its taints are tolerated. */
export function wouldTake(selection: Selection, podSpec: Json | undefined, node: JsonObject): boolean {
  return toleratesAll(listAt(podSpec, "tolerations"), taintsOf(node)) && selection.selects(node);
}
