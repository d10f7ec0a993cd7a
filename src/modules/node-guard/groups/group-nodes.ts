import type { JsonObject } from "../../../core/json.ts";
import { labelsOf } from "../../../core/kubernetes/object.ts";
import { matches, requiredLabels } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { Index, View } from "../../../core/view/view.ts";
import type { Group } from "./group.ts";

/** Nodes by the keys of their labels: the nodes of a group are found without a scan. */
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
