import type { Draft } from "../../../core/evaluate/draft.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import { isObject, type Json, type JsonObject } from "../../../core/json.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import type { Path } from "../../../core/path.ts";
import type { View } from "../../../core/view/view.ts";
import { nodesOf } from "../claims/candidates.ts";
import { PodNodes } from "../claims/pod-nodes.ts";
import { reachableGroups } from "../claims/selection.ts";
import { REQUIRED, termsOf } from "../claims/terms.ts";
import type { Group } from "../groups/group.ts";
import { withoutTolerations } from "./drop-tolerations.ts";
import { excludeNodes, excludeSelector } from "./exclude.ts";

export interface Exclusion {
  readonly view: View;
  /** The spec as it is stored: its tolerations stay. */
  readonly stored?: JsonObject | undefined;
  /**
   * The API server takes longer terms, but neither more terms nor fewer: so of a pod that waits at a gate. Where the group can't be
   * excluded by its labels then, its nodes are excluded by their names.
   */
  readonly sameTerms?: boolean;
  readonly finding: (what: "tolerations" | "affinity", path: Path) => Finding | undefined;
}

/** Keeps pods with this spec off the nodes of a group, in the way of the group's steering. */
export function excludeGroup(
  object: Draft,
  spec: Path,
  group: Group,
  { view, stored, sameTerms = false, finding }: Exclusion,
): "done" | "too many terms" {
  if (group.steering === "DropToleration") {
    const rest = withoutTolerations(object.get(...spec), stored, group, view);
    const path = [...spec, "tolerations"];
    if (rest !== "unchanged") object.set(path, rest, finding("tolerations", path));
    if (reachableGroups(new PodNodes(object.get(...spec)), [group], view).length === 0) return "done";
  }
  // Written with its parent: the list itself may be placement's, and its provenance stays so.
  const path = [...spec, ...REQUIRED];
  const given = termsOf(object.get(...spec));
  let terms = excludeSelector(given, group.labelSelector);
  if (terms === "unchanged") return "done";
  if (sameTerms && given !== undefined && terms.length !== given.length) {
    const names = reachableNodes(object.get(...spec), group, view);
    terms = names === "too many" ? names : excludeNodes(given, group.labelSelector, names);
  }
  if (terms === "too many") return "too many terms";
  const required = object.get(...path);
  const value = { ...(isObject(required) ? required : {}), nodeSelectorTerms: terms };
  return object.set(path, value, finding("affinity", path)) ? "done" : "too many terms";
}

function reachableNodes(spec: Json | undefined, group: Group, view: View): string[] | "too many" {
  const pod = new PodNodes(spec);
  const nodes = [...nodesOf(group, view)];
  return pod.exceeds(nodes.length) ? "too many" : nodes.filter((node) => pod.canRunOn(node)).map(nameOf);
}
