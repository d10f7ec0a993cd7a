import { at, type Json, type JsonObject, listAt } from "../../../core/json.ts";
import { type Taint, taintsOf } from "../../../core/kubernetes/taints.ts";
import { tolerates } from "../../../core/kubernetes/tolerations.ts";

/**
 * Whether an update of tolerations lets a pod stay longer on its node than before: it tolerates a NoExecute taint of the node that it
 * did not tolerate, or for a longer time.
 */
export function retains(
  old: JsonObject | undefined,
  updated: JsonObject | undefined,
  node: JsonObject,
): boolean {
  const [before, after] = [listAt(old, "tolerations"), listAt(updated, "tolerations")];
  for (const taint of taintsOf(node)) {
    if (taint.effect === "NoExecute" && toleratedSeconds(after, taint) > toleratedSeconds(before, taint))
      return true;
  }
  return false;
}

/** As the taint manager reads it: the first toleration that matches counts. */
function toleratedSeconds(tolerations: readonly Json[], taint: Taint): number {
  for (const toleration of tolerations) {
    if (!tolerates(toleration, taint)) continue;
    const seconds = at(toleration, "tolerationSeconds");
    return typeof seconds === "number" ? Math.max(0, seconds) : Number.POSITIVE_INFINITY;
  }
  return -1;
}
