import { type Json, listAt, stringAt } from "../../../core/json.ts";
import { HARD_EFFECTS, taintsOf } from "../../../core/kubernetes/taints.ts";
import { tolerationMeaning } from "../../../core/kubernetes/tolerations.ts";
import type { View } from "../../../core/view/view.ts";
import { nodesOf } from "../claims/candidates.ts";
import type { Group } from "../groups/group.ts";

/**
 * The tolerations of a pod without those that name a key by which nodes of the group are tainted. One without a key stays: it bears
 * much else, such as a node that is not ready. Those that the stored template has stay too.
 */
export function withoutTolerations(
  podSpec: Json | undefined,
  stored: Json | undefined,
  group: Group,
  view: View,
): readonly Json[] | "unchanged" {
  const tolerations = listAt(podSpec, "tolerations");
  if (!tolerations.some((one) => (stringAt(one, "key") ?? "") !== "")) return "unchanged";
  const keys = taintKeys(group, view);
  const kept = new Set(listAt(stored, "tolerations").map(tolerationMeaning));
  const rest = tolerations.filter(
    (one) => !keys.has(stringAt(one, "key") ?? "") || kept.has(tolerationMeaning(one)),
  );
  return rest.length === tolerations.length ? "unchanged" : rest;
}

function taintKeys(group: Group, view: View): ReadonlySet<string> {
  const keys = new Set<string>();
  for (const node of nodesOf(group, view))
    for (const { key, effect } of taintsOf(node))
      if (key !== "" && (HARD_EFFECTS as readonly string[]).includes(effect)) keys.add(key);
  return keys;
}
