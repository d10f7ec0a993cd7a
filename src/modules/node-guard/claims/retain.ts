import { allow, type Result } from "../../../core/decision/decision.ts";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { type Taint, taintsOf } from "../../../core/kubernetes/taints.ts";
import { tolerates } from "../../../core/kubernetes/tolerations.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Group } from "../groups/group.ts";
import { CLAIMS } from "./claim.ts";
import { evaluateClaim, type GuardedPod } from "./evaluate-claim.ts";
import { membership, readNode, unread } from "./read.ts";
import { decide } from "./report.ts";

/** The claim `retain`: a toleration that keeps a pod on its node. */
export function decideRetain(
  context: Context,
  groups: readonly Group[],
  pod: JsonObject,
  subject: GuardedPod,
): Result {
  const name = stringAt(pod, "spec", "nodeName") ?? "";
  const read = readNode(name, context, "cached");
  if ("need" in read) return read;
  if ("failed" in read) return unread(`node ${name}`, read.failed, []);
  // A pod whose node is gone is not kept there.
  if (read.node === "unknown" || !retains(context.draft.old, pod, read.node)) return allow();
  const { groups: members } = membership(read.node, groups, Number.POSITIVE_INFINITY);
  const found = evaluateClaim(
    { claim: CLAIMS.retain, groups: members, nodes: [name] },
    subject,
    context.facts,
  );
  return "need" in found ? found : decide(found.evaluated, subject);
}

/**
 * Whether an update of tolerations lets a pod stay longer on its node: it tolerates a NoExecute taint of the node that
 * it did not tolerate, or for a longer time.
 */
function retains(old: JsonObject | undefined, updated: JsonObject, node: JsonObject): boolean {
  const [before, after] = [
    listAt(at(old, "spec"), "tolerations"),
    listAt(at(updated, "spec"), "tolerations"),
  ];
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
