import { allow, type NeedMore, type Result } from "../../../core/evaluate/decision.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import { controllerOf } from "../../../core/kubernetes/object.ts";
import { exemptNamespaces } from "../../../core/module/installation.ts";
import type { Context } from "../../../core/module/module.ts";
import { CLAIMS } from "../claims/claim.ts";
import { PodNodes, seenBefore } from "../claims/pod-nodes.ts";
import { reachableGroups, selectionClaims } from "../claims/selection.ts";
import { termsOf } from "../claims/terms.ts";
import { type Group, steers } from "../groups/group.ts";
import { excludeSelector } from "../steering/exclude.ts";
import { refusedPod } from "./assign.ts";
import { authorizeActor, authorizePod } from "./authorize.ts";
import { type ClaimJudgements, judge } from "./judge.ts";
import { type Judgement, verdictOf } from "./judgement.ts";
import { decide } from "./report.ts";
import type { GuardedPod } from "./subject.ts";

/**
 * The DaemonSet controller names a node in each pod and tries again for ever where one is refused, and then not even its pods for other
 * nodes come: these are refused at bind. Without credentials of their own, controllers share the last identity. ownerReferences prove
 * nothing, since anyone may write them.
 */
const DAEMON_SET_CONTROLLERS: ReadonlySet<string> = new Set([
  "system:serviceaccount:kube-system:daemon-set-controller",
  "system:kube-controller-manager",
]);

/** A pod that its controller made for just one node. Where controllers share an identity, by its owner too. */
export function isDaemonPod({ request, object }: Context): boolean {
  const { username } = request.userInfo;
  if (!DAEMON_SET_CONTROLLERS.has(username)) return false;
  return username.endsWith(":daemon-set-controller") || controllerOf(object.object)?.kind === "DaemonSet";
}

/** C3 to C5 and C8 of a pod without a node. */
export function decideSelection(
  context: Context,
  groups: readonly Group[],
  pod: JsonObject,
  subject: GuardedPod,
): Result {
  if (isDaemonPod(context)) return allow();
  const { request, object } = context;
  const nodes = new PodNodes(pod["spec"]);
  const judged = judgeSelection(context, groups, nodes, subject);
  if ("need" in judged) return judged;
  const before = seenBefore(object.old?.["spec"]);
  const refused = new Set(
    judged.judgements
      .filter((one) => verdictOf(one) === "deny" || one.group.effectiveMode !== "Enable")
      .map(({ group }) => group),
  );
  const unsteered = judgeReachable(
    context,
    groups.filter((group) => !refused.has(group)),
    {
      spec: pod["spec"],
      nodes,
      before,
      steering: before === undefined ? "done" : "too late",
    },
    subject,
  );
  if ("need" in unsteered) return unsteered;
  return decide([...judged.judgements, ...unsteered.judgements], subject, {
    refusedRegarding: refusedPod(request, pod),
  });
}

/** Judges what the constraints of a pod, or of a template, claim. */
export function judgeSelection(
  { view, facts }: Context,
  groups: readonly Group[],
  nodes: PodNodes,
  subject: GuardedPod,
): ClaimJudgements {
  const blocking = blockingGroups(groups, subject, { facts });
  if ("need" in blocking) return blocking;
  const found = selectionClaims(nodes, blocking.groups, { view, facts });
  if ("need" in found) return found;
  const judgements: Judgement[] = [];
  for (const { claim, group, nodes: names } of found.claims) {
    const judged = judge({ claim, groups: [group], nodes: names }, subject, facts);
    if ("need" in judged) return judged;
    judgements.push(...judged.judgements);
  }
  return { judgements };
}

/** A pod, or the pods of a template, that a scheduler may see. */
export interface Schedulable {
  readonly spec: Json | undefined;
  readonly nodes: PodNodes;
  /** As it was, where a scheduler may have seen it. */
  readonly before: PodNodes | undefined;
  /** Whether the mutating phase steered it, it is steered when its pods are created, or its fields are fixed. */
  readonly steering: "done" | "later" | "too late";
}

/**
 * C8: steering leaves a node possible. Without this a pod of high priority has others evicted there before its bind is refused, and
 * again at each try. Exempt namespaces and authorised actors are not judged.
 */
export function judgeReachable(
  { request, object, view, facts, installation }: Context,
  all: readonly Group[],
  { spec, nodes, before, steering }: Schedulable,
  subject: GuardedPod,
): ClaimJudgements {
  if (exemptNamespaces(installation).includes(subject.namespace)) return { judgements: [] };
  const steered = all.filter((group) => group.steering !== "Disabled");
  const blocking = blockingGroups(steered, subject, { facts }, "pod");
  if ("need" in blocking) return blocking;
  const left = reachableGroups(nodes, blocking.groups, view, before).filter(
    (group) =>
      steering === "too late" ||
      (steering === "done" && steers(group)) ||
      nodes.tooLarge ||
      excludeSelector(termsOf(spec), group.labelSelector) === "too many",
  );
  // What authorises a controller says nothing of the objects that it makes for others.
  const made = request.operation === "CREATE" && controllerOf(object.object) !== undefined;
  const groups: Group[] = [];
  for (const group of left) {
    const actor = made ? { by: undefined } : authorizeActor(group, request, facts);
    if ("need" in actor) return actor;
    if (actor.by === undefined) groups.push(group);
  }
  return judge({ claim: CLAIMS.reachable, groups, nodes: [] }, subject, facts);
}

/** The groups that do not authorise the pod or, where they ask for it and it is asked for, the sender of the request. */
export function blockingGroups(
  groups: readonly Group[],
  { request, namespace, account }: GuardedPod,
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
