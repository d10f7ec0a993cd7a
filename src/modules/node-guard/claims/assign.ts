import { allow, type Result } from "../../../core/decision/decision.ts";
import type { ObjectReference } from "../../../core/decision/finding.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import { at, type JsonObject } from "../../../core/json.ts";
import { controllerOf, isMirrorPod } from "../../../core/kubernetes/object.ts";
import { isNodeIdentity } from "../../../core/kubernetes/principals.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Group } from "../groups/group.ts";
import { CLAIMS } from "./claim.ts";
import { evaluateClaim, type GuardedPod } from "./evaluate-claim.ts";
import { malformed, membership, readNode, unread } from "./read.ts";
import { decide } from "./report.ts";

/** The claim `assign`: a pod created with its node. The node is always read live: the cache may be behind a new label. */
export function decideAssign(
  context: Context,
  groups: readonly Group[],
  pod: JsonObject,
  subject: GuardedPod,
): Result {
  const name = at(pod, "spec", "nodeName");
  if (typeof name !== "string") return malformed(subject.name, groups);
  if (isOwnMirrorPod(context.request, pod, name)) return allow([MIRROR]);
  const read = readNode(name, context, "live");
  if ("need" in read) return read;
  const claimed = { claim: CLAIMS.assign, nodes: [name] };
  if ("failed" in read) {
    const worst = evaluateClaim({ ...claimed, groups }, subject, context.facts);
    return "need" in worst ? worst : unread(`node ${name}`, read.failed, worst.evaluated);
  }
  const counted = membership(read.node, groups, context.now);
  const found = evaluateClaim({ ...claimed, ...counted }, subject, context.facts);
  if ("need" in found) return found;
  return decide(found.evaluated, subject, { refusedRegarding: refusedPod(context.request, pod) });
}

const MIRROR = {
  rule: "assign",
  outcome: "authorized",
  message: "mirror pod of the node's own kubelet",
  audit: { key: "rule", value: "mirror" },
} as const;

/** The annotation alone proves nothing: the kubelet of just that node must have sent it. */
function isOwnMirrorPod({ operation, userInfo }: AdmissionRequest, pod: JsonObject, node: string): boolean {
  return operation === "CREATE" && isMirrorPod(pod) && isNodeIdentity(userInfo) === node;
}

/** A refused pod never exists: the event is on its owner, or its namespace. */
export function refusedPod(
  { operation, namespace }: AdmissionRequest,
  pod: JsonObject,
): ObjectReference | undefined {
  if (operation !== "CREATE") return undefined;
  const owner = controllerOf(pod);
  if (owner === undefined) return { apiVersion: "v1", kind: "Namespace", name: namespace, namespace };
  return { ...owner, namespace };
}
