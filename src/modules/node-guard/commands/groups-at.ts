import type { Assembly } from "../../../core/evaluate/assembly.ts";
import { at, isObject } from "../../../core/json.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import { matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { Group } from "../groups/group.ts";
import { groupsOf } from "../groups/groups.ts";

/** The groups as they count at a time. */
export function groupsAt({ view, installation }: Assembly, now: number): readonly Group[] {
  return groupsOf(view, installation, now);
}

/** The names of a group's nodes, in order. */
export function nodesIn({ view }: Assembly, { labelSelector }: Group): string[] {
  const nodes = [...view.list("nodes")].filter((node) => {
    const labels = at(node, "metadata", "labels");
    return matches(labelSelector, isObject(labels) ? labels : undefined);
  });
  return nodes.map(nameOf).sort();
}
