import { allow, type NeedMore, type Result } from "../../../core/evaluate/decision.ts";
import type { AdmissionRequest } from "../../../core/evaluate/request.ts";
import { isObject, type JsonObject } from "../../../core/json.ts";
import type { Context } from "../../../core/module/module.ts";
import { selectionClaims } from "../claims/selection.ts";
import type { Group } from "../groups/group.ts";
import { refusedPod } from "./assign.ts";
import { authorizeActor, authorizePod } from "./authorize.ts";
import { judge } from "./judge.ts";
import type { Judgement } from "./judgement.ts";
import { decide } from "./report.ts";
import type { Subject } from "./subject.ts";

/**
 * The DaemonSet controller names a node in each pod and tries again for ever where one is refused, and then not even its pods for other
 * nodes come: these are refused at bind. Without credentials of their own, controllers share the last identity. ownerReferences prove
 * nothing, since anyone may write them.
 */
const DAEMON_SET_CONTROLLERS: ReadonlySet<string> = new Set([
  "system:serviceaccount:kube-system:daemon-set-controller",
  "system:kube-controller-manager",
]);

export function isDaemonSetController({ userInfo }: AdmissionRequest): boolean {
  return DAEMON_SET_CONTROLLERS.has(userInfo.username);
}

/** C3 to C5 of a pod without a node. */
export function decideSelection(
  context: Context,
  groups: readonly Group[],
  pod: JsonObject,
  subject: Subject,
): Result {
  if (isDaemonSetController(context.request)) return allow();
  const judged = judgeSelection(context, groups, pod["spec"], subject);
  if ("need" in judged) return judged;
  return decide(judged.judgements, subject, { refusedRegarding: refusedPod(context.request, pod) });
}

/** Judges what the constraints of a pod, or of a template, claim. */
export function judgeSelection(
  { view, facts }: Context,
  groups: readonly Group[],
  podSpec: unknown,
  subject: Subject,
): { readonly judgements: readonly Judgement[] } | NeedMore {
  const spec = isObject(podSpec) ? podSpec : undefined;
  const blocking = blockingGroups(groups, subject, { facts });
  if ("need" in blocking) return blocking;
  const found = selectionClaims(spec, blocking.groups, { view, facts });
  if ("need" in found) return found;
  const judgements: Judgement[] = [];
  for (const { claim, group, nodes } of found.claims) {
    const judged = judge({ claim, groups: [group], nodes }, subject, facts);
    if ("need" in judged) return judged;
    judgements.push(...judged.judgements);
  }
  return { judgements };
}

/** The groups that do not authorise the pod or, where they ask for it and it is asked for, the sender of the request. */
export function blockingGroups(
  groups: readonly Group[],
  { request, namespace, account }: Subject,
  { facts }: Pick<Context, "facts">,
  sides: "pod" | "both" = "both",
): { readonly groups: readonly Group[] } | NeedMore {
  const blocking: Group[] = [];
  for (const group of groups) {
    const asksActor = group.checkRequesterOnSelection && sides === "both";
    const authorized = [
      authorizePod(group, namespace, account, facts),
      ...(asksActor ? [authorizeActor(group, request, facts)] : []),
    ];
    for (const side of authorized) if ("need" in side) return side;
    if (authorized.some((side) => "by" in side && side.by === undefined)) blocking.push(group);
  }
  return { groups: blocking };
}
