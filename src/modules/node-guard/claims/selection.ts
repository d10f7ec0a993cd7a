import { allow, type Result } from "../../../core/decision/decision.ts";
import type { Fact, Facts, Need } from "../../../core/decision/need.ts";
import { isObject, type JsonObject } from "../../../core/json.ts";
import { controllerOf, nameOf } from "../../../core/kubernetes/object.ts";
import type { PodPlacement } from "../../../core/kubernetes/selectors/node-selector.ts";
import type { Context } from "../../../core/module/module.ts";
import type { View } from "../../../core/view/view.ts";
import type { Group } from "../groups/group.ts";
import { groupsOfNode } from "../groups/group-nodes.ts";
import { refusedPod } from "./assign.ts";
import { CLAIMS, type Claim } from "./claim.ts";
import {
  blockingGroups,
  type EvaluatedClaims,
  evaluateClaim,
  type GuardedPod,
  verdictOf,
} from "./evaluate-claim.ts";
import { impliesSelector, PodNodes, seenBefore, usableTerms } from "./pod-nodes.ts";
import { evaluateReachable, membersOf } from "./reachable.ts";
import { decide } from "./report.ts";

/** A claim of a pod's constraints on the nodes of a group. */
export interface GroupClaim {
  readonly claim: Claim;
  readonly group: Group;
  /** Known nodes of the group that the pod would be restricted to. */
  readonly nodes: readonly string[];
}

/** The inputs of a selection's comparison. */
export interface SelectionContext {
  readonly view: View;
  readonly facts: Facts;
}

export type SelectionClaims = { readonly claims: readonly GroupClaim[] } | { readonly need: readonly Need[] };

/** Pods name one node, or a few. Beyond it nothing is claimed early, and the bind decides. */
const MOST_READS = 16;
const HOSTNAME = "kubernetes.io/hostname";
const NONE: SelectionClaims = { claims: [] };

/** A node that the pod may run on, with those groups of it that do not authorise the pod. */
interface Candidate {
  readonly name: string;
  readonly groups: readonly Group[];
}

/**
 * The claims `pinned`, `exclusive`, `incidental` and `implied` of a pod's nodeSelector and required affinity on the nodes of groups that do
 * not authorise it. Preferred affinity, spreading, pod affinity and taints never count. A pod that is too large to compare
 * claims nothing: steering and the bind decide.
 */
export function selectionClaims(
  pod: PodNodes,
  blocking: readonly Group[],
  { view, facts }: SelectionContext,
): SelectionClaims {
  if (blocking.length === 0 || !pod.constrained) return NONE;
  const names = pinnedNames(pod.placement);
  if (names !== undefined) return pinned(names, pod, blocking, { view, facts });
  const candidates = protectedCandidates(pod, blocking, view);
  const implied = blocking.filter(({ labelSelector }) => impliesSelector(pod.placement, labelSelector));
  if (candidates.length === 0)
    return { claims: implied.map((group) => ({ claim: CLAIMS.implied, group, nodes: [] })) };
  if (implied.length === 0 && hasOthers(pod, candidates, view)) return NONE;
  return {
    claims: restricted(candidates).map(({ group, nodes }) => ({
      claim: namesGroup(pod.placement, group) ? CLAIMS.exclusive : CLAIMS.incidental,
      group,
      nodes,
    })),
  };
}

/** The nodes that the terms name, if every usable one names one; `undefined` otherwise. */
function pinnedNames({ terms }: PodPlacement): ReadonlySet<string> | undefined {
  const usable = usableTerms(terms);
  const names = usable.map((term) => term.names.find(({ operator }) => operator === "In")?.name);
  if (usable.length === 0 || names.includes(undefined)) return undefined;
  return new Set(names as string[]);
}

function pinned(
  names: ReadonlySet<string>,
  pod: PodNodes,
  blocking: readonly Group[],
  { view, facts }: SelectionContext,
): SelectionClaims {
  const candidates: Candidate[] = [];
  const needs: Need[] = [];
  const unread: Fact[] = [];
  for (const name of names) {
    const known = view.get("nodes", "", name);
    const need: Need = { get: { resource: "nodes", name }, live: true };
    const fact: Fact | undefined = known === undefined ? facts.of(need) : { found: known, complete: true };
    if (fact === undefined) needs.push(need);
    else if ("failed" in fact) unread.push(fact);
    // An unknown node counts as a member of every group.
    else if ("absent" in fact) candidates.push({ name, groups: blocking });
    else if (isObject(fact.found) && pod.selects(fact.found)) {
      const groups = groupsOfNode(blocking, fact.found);
      // The pod may run there.
      if (groups.length === 0) return NONE;
      candidates.push({ name, groups });
    }
  }
  if (needs.length > MOST_READS || unread.length > 0) return NONE;
  if (needs.length > 0) return { need: needs };
  return {
    claims: restricted(candidates).map(({ group, nodes }) => ({ claim: CLAIMS.pinned, group, nodes })),
  };
}

function protectedCandidates(pod: PodNodes, blocking: readonly Group[], view: View): Candidate[] {
  const nodes = new Map<string, JsonObject>();
  const { members, total } = membersOf(blocking, view);
  if (pod.exceeds(total)) return [];
  for (const node of members.flat())
    if (!nodes.has(nameOf(node)) && pod.selects(node)) nodes.set(nameOf(node), node);
  return [...nodes].map(([name, node]) => ({ name, groups: groupsOfNode(blocking, node) }));
}

/** Whether the pod may also run on a node outside of these; true if there is too much to compare. */
function hasOthers(pod: PodNodes, candidates: readonly Candidate[], view: View): boolean {
  if (pod.exceeds(view.count("nodes"))) return true;
  const known = new Set(candidates.map(({ name }) => name));
  for (const node of view.list("nodes")) if (!known.has(nameOf(node)) && pod.selects(node)) return true;
  return false;
}

/**
 * The groups that keep the pod from all of the candidates. If a node is only in groups that inform, the pod may run
 * there: enforcing groups are then not a reason.
 */
function restricted(candidates: readonly Candidate[]): { group: Group; nodes: string[] }[] {
  const enforced = candidates.every(({ groups }) =>
    groups.some(({ effectiveMode }) => effectiveMode === "Enable"),
  );
  const found = new Map<Group, string[]>();
  for (const { name, groups } of candidates) {
    for (const group of groups) {
      if (group.effectiveMode === "Enable" && !enforced) continue;
      const names = found.get(group);
      if (names === undefined) found.set(group, [name]);
      else names.push(name);
    }
  }
  return [...found].map(([group, nodes]) => ({ group, nodes }));
}

/** Whether the constraints are about the group: by a key of its selector, or by the names of nodes. */
function namesGroup({ nodeSelector = [], terms }: PodPlacement, { labelSelector }: Group): boolean {
  const keys = new Set([HOSTNAME]);
  if (labelSelector.kind === "requirements") for (const { key } of labelSelector.requirements) keys.add(key);
  return (
    nodeSelector.some(([key]) => keys.has(key)) ||
    usableTerms(terms).some(
      ({ labels, names }) =>
        labels.some(({ key }) => keys.has(key)) || names.some(({ operator }) => operator === "In"),
    )
  );
}

/**
 * The DaemonSet controller names a node in each pod and retries forever if one is refused, and then not even its pods
 * for other nodes are created: these are refused at bind. Without separate credentials, controllers share the last
 * identity. ownerReferences prove nothing, because any user may write them.
 */
const DAEMON_SET_CONTROLLERS: ReadonlySet<string> = new Set([
  "system:serviceaccount:kube-system:daemon-set-controller",
  "system:kube-controller-manager",
]);

/** A pod that its controller created for exactly one node. If controllers share an identity, also by its owner. */
export function isDaemonPod({ request, draft }: Context): boolean {
  const { username } = request.userInfo;
  if (!DAEMON_SET_CONTROLLERS.has(username)) return false;
  return username.endsWith(":daemon-set-controller") || controllerOf(draft.object)?.kind === "DaemonSet";
}

/** Decides the claims of a pod without a node: by its constraints, and by the nodes that a scheduler may choose. */
export function decideSelection(
  context: Context,
  groups: readonly Group[],
  pod: JsonObject,
  subject: GuardedPod,
): Result {
  if (isDaemonPod(context)) return allow();
  const { request, draft } = context;
  const nodes = new PodNodes(pod["spec"]);
  const claims = evaluateSelection(context, groups, nodes, subject);
  if ("need" in claims) return claims;
  const before = seenBefore(draft.old?.["spec"]);
  const refused = new Set(
    claims.evaluated
      .filter((one) => verdictOf(one) === "deny" || one.group.effectiveMode !== "Enable")
      .map(({ group }) => group),
  );
  const unsteered = evaluateReachable(
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
  return decide([...claims.evaluated, ...unsteered.evaluated], subject, {
    refusedRegarding: refusedPod(request, pod),
  });
}

/** Evaluates the claims of the constraints of a pod, or of a template. */
export function evaluateSelection(
  { view, facts }: Context,
  groups: readonly Group[],
  nodes: PodNodes,
  subject: GuardedPod,
): EvaluatedClaims {
  const blocking = blockingGroups(groups, CLAIMS.exclusive, subject, facts);
  if ("need" in blocking) return blocking;
  const found = selectionClaims(nodes, blocking.groups, { view, facts });
  if ("need" in found) return found;
  const all = found.claims.map(({ claim, group, nodes: names }) =>
    evaluateClaim({ claim, groups: [group], nodes: names }, subject, facts),
  );
  const needs = all.flatMap((one) => ("need" in one ? one.need : []));
  return needs.length > 0
    ? { need: needs }
    : { evaluated: all.flatMap((one) => ("evaluated" in one ? one.evaluated : [])) };
}
