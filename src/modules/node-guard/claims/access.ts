import { allow, type Result } from "../../../core/decision/decision.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import { type JsonObject, stringAt } from "../../../core/json.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Group } from "../groups/group.ts";
import { CLAIMS } from "./claim.ts";
import { evaluateClaim, type GuardedPod } from "./evaluate-claim.ts";
import { membership, readNode, readPod, unread } from "./read.ts";
import { decide } from "./report.ts";

/** Subresources that reach into a running pod, or raise its resources. */
export const ACCESS_SUBRESOURCES = [
  "ephemeralcontainers",
  "exec",
  "attach",
  "portforward",
  "proxy",
  "resize",
] as const;

/** Access to a pod on a protected node, if a group covers it: the sender of the request must be authorised. */
export function decideAccess(context: Context, all: readonly Group[]): Result {
  const { request, facts, now } = context;
  const { namespace } = request;
  const name = podNameOf(request);
  const groups = all.filter(({ guardAccessOnProtectedNodes }) => guardAccessOnProtectedNodes);
  if (groups.length === 0) return allow();
  const pod = podIn(context) ?? readPod(namespace, name, context);
  if ("need" in pod) return pod;
  if (pod.failed !== undefined) return unread(`pod ${namespace}/${name}`, pod.failed, []);
  const node = stringAt(pod.pod, "spec", "nodeName") ?? "";
  if (node === "") return allow();
  const read = readNode(node, context, "cached");
  if ("need" in read) return read;
  if ("failed" in read) return unread(`node ${node}`, read.failed, []);
  const subject: GuardedPod = { request, name: `pod ${namespace}/${name}`, namespace, account: undefined };
  const claimed = { claim: CLAIMS.access, nodes: [node], groups: membership(read.node, groups, now).groups };
  const found = evaluateClaim(claimed, subject, facts);
  if ("need" in found) return found;
  return decide(found.evaluated, subject, {
    regarding: { apiVersion: "v1", kind: "Pod", namespace, name, ...uidOf(pod.pod) },
  });
}

/**
 * The proxy's URL names a pod with a port and a scheme, and the API server hands that on as the name: `web:8080`, `https:web:8443`. Names
 * of pods have no colon.
 */
function podNameOf({ name, subResource }: AdmissionRequest): string {
  if (subResource !== "proxy") return name;
  const parts = name.split(":");
  return (parts.length === 3 ? parts[1] : parts[0]) ?? name;
}

/** An update has the pod; exec and similar requests do not. */
function podIn({ request, draft }: Context): { pod: JsonObject; failed?: undefined } | undefined {
  return request.operation === "UPDATE" ? { pod: draft.object } : undefined;
}

function uidOf(pod: JsonObject | undefined): { uid?: string } {
  const uid = stringAt(pod, "metadata", "uid");
  return uid === undefined ? {} : { uid };
}
