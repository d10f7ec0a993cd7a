import { exemptNamespaces } from "../../../core/installation/installation.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import { controllerOf } from "../../../core/kubernetes/object.ts";
import type { Context } from "../../../core/module/module.ts";
import type { View } from "../../../core/view/view.ts";
import { type Group, steers } from "../groups/group.ts";
import { nodesOf } from "../groups/group-nodes.ts";
import { CLAIMS } from "./claim.ts";
import {
  authorizeActor,
  blockingGroups,
  type EvaluatedClaims,
  evaluateClaim,
  type GuardedPod,
} from "./evaluate-claim.ts";
import { excludeSelector } from "./exclude.ts";
import { excludesSelector, type PodNodes, termsOf } from "./pod-nodes.ts";

/**
 * The groups with a node that a scheduler could choose for a pod; with `before` only if it could not choose that node
 * for the previous pod. A pod that is too large to compare could be scheduled anywhere, unless its constraints
 * literally exclude it.
 */
export function reachableGroups(
  pod: PodNodes,
  groups: readonly Group[],
  view: View,
  before?: PodNodes | undefined,
): Group[] {
  const { members, total } = membersOf(groups, view);
  const old = before?.exceeds(total) ? undefined : before;
  const isReachable = (nodes: readonly JsonObject[], { labelSelector }: Group) =>
    pod.exceeds(total)
      ? nodes.length > 0 && !excludesSelector(pod.placement, labelSelector)
      : nodes.some((node) => pod.canRunOn(node) && !old?.canRunOn(node));
  return groups.filter((group, i) => isReachable(members[i] ?? [], group));
}

/** The known nodes of each group, and their total number. */
export function membersOf(
  groups: readonly Group[],
  view: View,
): { readonly members: readonly (readonly JsonObject[])[]; readonly total: number } {
  const members = groups.map((group) => [...nodesOf(group, view)]);
  return { members, total: members.reduce((sum, { length }) => sum + length, 0) };
}

/** A pod, or the pods of a template, that a scheduler may see. */
export interface Schedulable {
  readonly spec: Json | undefined;
  readonly nodes: PodNodes;
  /** The previous spec, if a scheduler may have seen it. */
  readonly before: PodNodes | undefined;
  /** Whether the mutating phase steered it, it is steered when its pods are created, or its fields are fixed. */
  readonly steering: "done" | "later" | "too late";
}

/**
 * The claim `reachable`: the pod tolerates the taints of a protected node and may be scheduled there, because steering can't exclude the
 * node. Without this claim a pod of high priority evicts others there before its bind is refused, and again at each attempt. Exempt
 * namespaces and authorised actors are left out.
 */
export function evaluateReachable(
  { request, draft, view, facts, installation }: Context,
  all: readonly Group[],
  { spec, nodes, before, steering }: Schedulable,
  subject: GuardedPod,
): EvaluatedClaims {
  if (exemptNamespaces(installation).includes(subject.namespace)) return { evaluated: [] };
  const steered = all.filter((group) => group.steering !== "Disabled");
  const blocking = blockingGroups(steered, CLAIMS.reachable, subject, facts);
  if ("need" in blocking) return blocking;
  const left = reachableGroups(nodes, blocking.groups, view, before).filter(
    (group) =>
      steering === "too late" ||
      (steering === "done" && steers(group)) ||
      nodes.tooLarge ||
      excludeSelector(termsOf(spec), group.labelSelector) === "too many",
  );
  // A controller's authorisation does not extend to the objects that it creates for others.
  const made = request.operation === "CREATE" && controllerOf(draft.object) !== undefined;
  const groups: Group[] = [];
  for (const group of left) {
    const actor = made ? { by: undefined } : authorizeActor(group, request, facts);
    if ("need" in actor) return actor;
    if (actor.by === undefined) groups.push(group);
  }
  return evaluateClaim({ claim: CLAIMS.reachable, groups, nodes: [] }, subject, facts);
}
