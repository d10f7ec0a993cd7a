import { allow, type Result } from "../../../core/evaluate/decision.ts";
import { at, isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import { isBeingDeleted } from "../../../core/kubernetes/object.ts";
import { isBound } from "../../../core/kubernetes/pod-state.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Path } from "../../../core/path.ts";
import { CLAIMS } from "../claims/claim.ts";
import { retains } from "../claims/retain.ts";
import type { Group } from "../groups/group.ts";
import { decideAssign } from "./assign.ts";
import { judge, membership, readNode, unread } from "./judge.ts";
import { decide } from "./report.ts";
import { decideSelection } from "./selection.ts";
import { accountOf, describePod, type GuardedPod } from "./subject.ts";

/** Pods that are created with a node, and those without. */
export const ASSIGN_HOOK = "node-guard-assign";
export const PODS_HOOK = "node-guard-pods";

/** What of a pod says where it runs. */
export const PLACEMENT_FIELDS: readonly Path[] = [
  ["spec", "nodeName"],
  ["spec", "nodeSelector"],
  ["spec", "affinity", "nodeAffinity"],
  ["spec", "tolerations"],
  ["spec", "schedulingGates"],
];

/** A pod that is created. Of the two hooks each answers for its own pods, also where no API server evaluates their conditions. */
export function decidePodCreate(context: Context, groups: readonly Group[]): Result {
  const pod = context.object.object;
  const subject = podSubject(context, pod);
  if (hasNode(pod)) return context.hook === PODS_HOOK ? allow() : decideAssign(context, groups, pod, subject);
  return context.hook.startsWith(ASSIGN_HOOK) ? allow() : decideSelection(context, groups, pod, subject);
}

/**
 * A pod that is updated. Only where it changes something about its placement: finalizers, labels and images of a pod that is in the
 * wrong place are nobody's concern here, or it could never go.
 */
export function decidePodUpdate(context: Context, groups: readonly Group[]): Result {
  const { object: pod, old } = context.object;
  if (isBeingDeleted(pod) || !context.object.changed(PLACEMENT_FIELDS)) return allow();
  const subject = podSubject(context, pod);
  if (hasNode(pod) && (old === undefined || !isBound(old)))
    return decideAssign(context, groups, pod, subject);
  return isBound(pod)
    ? decideRetain(context, groups, pod, subject)
    : decideSelection(context, groups, pod, subject);
}

/** C7: a toleration that keeps a pod on the node that it is on. */
function decideRetain(
  context: Context,
  groups: readonly Group[],
  pod: JsonObject,
  subject: GuardedPod,
): Result {
  const name = stringAt(pod, "spec", "nodeName") ?? "";
  const read = readNode(name, context, "cached");
  if ("need" in read) return read;
  if ("failed" in read) return unread(`node ${name}`, read.failed, []);
  // What is on no node is not kept there.
  if (read.node === "unknown") return allow();
  if (!retains(specOf(context.object.old), specOf(pod), read.node)) return allow();
  const { groups: members } = membership(read.node, groups, Number.POSITIVE_INFINITY);
  const judged = judge({ claim: CLAIMS.retain, groups: members, nodes: [name] }, subject, context.facts);
  return "need" in judged ? judged : decide(judged.judgements, subject);
}

export function podSubject({ request }: Context, pod: JsonObject): GuardedPod {
  const { namespace } = request;
  return { request, name: describePod(request), namespace, account: accountOf(specOf(pod)) };
}

/** Anything but absent or empty: what is no text is for the claim to refuse. */
function hasNode(pod: JsonObject): boolean {
  const name = at(pod, "spec", "nodeName");
  return name !== undefined && name !== null && name !== "";
}

function specOf(pod: JsonObject | undefined): JsonObject | undefined {
  const spec = at(pod, "spec");
  return isObject(spec) ? spec : undefined;
}
