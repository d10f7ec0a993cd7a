import type { Result } from "../../../core/decision/decision.ts";
import type { ObjectReference } from "../../../core/decision/finding.ts";
import { at, isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Group } from "../groups/group.ts";
import { CLAIMS } from "./claim.ts";
import { accountOf, evaluateClaim, type GuardedPod, isViolation, podNameOf } from "./evaluate-claim.ts";
import { malformed, membership, type ReadPod, readNode, readPod, unread } from "./read.ts";
import { decide } from "./report.ts";

/** The claim `bind`: a Binding, at either URL. Its labels and annotations are never read: they are merged into the pod. */
export function decideBind(context: Context, groups: readonly Group[]): Result {
  const { request, facts, now } = context;
  const { namespace } = request;
  const binding = context.draft.object;
  const pod = podNameOf(request);
  const unnamed: GuardedPod = { request, name: `pod ${namespace}/${pod}`, namespace, account: undefined };
  const name = at(binding, "target", "name");
  if (typeof name !== "string" || name === "") return malformed(`Binding ${namespace}/${pod}`, groups);
  const node = readNode(name, context, "cached");
  if ("need" in node) return node;
  const counted = "failed" in node ? { groups } : membership(node.node, groups, now);
  const needsPod = counted.groups.some(
    ({ serviceAccountScope, rbac }) => serviceAccountScope === "Exact" || rbac,
  );
  const read = needsPod ? readPod(namespace, pod, context) : undefined;
  if (read !== undefined && "need" in read) return read;
  const uid = stringAt(binding, "metadata", "uid");
  const subject = needsPod ? { ...unnamed, account: accountOf(specOf(read)) } : unnamed;
  // The pod may have been replaced since: only a Binding with the pod's uid is about the account that was read.
  const otherPod = needsPod && (uid === undefined || uid !== stringAt(read?.pod, "metadata", "uid"));
  const claims = evaluateClaim({ claim: CLAIMS.bind, nodes: [name], ...counted, otherPod }, subject, facts);
  if ("need" in claims) return claims;
  if ("failed" in node) return unread(`node ${name}`, node.failed, claims.evaluated);
  if (read?.failed !== undefined) return unread(`pod ${namespace}/${pod}`, read.failed, claims.evaluated);
  const regarding: ObjectReference = { apiVersion: "v1", kind: "Pod", namespace, name: pod };
  if (uid !== undefined && uid !== "")
    return decide(claims.evaluated, subject, { regarding: { ...regarding, uid } });
  // kubectl finds an event only by the uid of its object.
  const found = claims.evaluated.some(isViolation) ? (read ?? readPod(namespace, pod, context)) : undefined;
  if (found !== undefined && "need" in found) return found;
  const known = stringAt(found?.pod, "metadata", "uid");
  return decide(claims.evaluated, subject, {
    regarding: known === undefined ? regarding : { ...regarding, uid: known },
  });
}

function specOf(read: ReadPod | undefined): JsonObject | undefined {
  const spec = at(read?.pod, "spec");
  return isObject(spec) ? spec : undefined;
}
