import type { JsonObject } from "../../../core/json.ts";
import { isBeingDeleted } from "../../../core/kubernetes/object.ts";
import type { DesiredCache } from "../desired/desired-cache.ts";
import { differenceOf } from "../desired/difference.ts";
import { nodePatch } from "../desired/node-patch.ts";
import type { RuleIndex } from "../rules/rule-index.ts";

/** Whether anything must change on a node, now or later. Keeps the desired state of those that need work, for `reconcileNode`. */
export function needsWork(node: JsonObject, index: RuleIndex, cache: DesiredCache): boolean {
  if (isBeingDeleted(node)) return false;
  const difference = differenceOf(node, cache.of(node, index), index.settings);
  if (difference.needsLedger || nodePatch(node, difference).length > 0) return true;
  cache.forget(node);
  return false;
}
