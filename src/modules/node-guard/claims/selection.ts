import type { Fact, Facts, Need } from "../../../core/evaluate/need.ts";
import { isObject, type JsonObject } from "../../../core/json.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import type { PodPlacement } from "../../../core/kubernetes/selectors/node-selector.ts";
import type { View } from "../../../core/view/view.ts";
import type { Group } from "../groups/group.ts";
import { groupsOfNode, nodesOf } from "./candidates.ts";
import { CLAIMS, type Claim } from "./claim.ts";
import { excludesSelector, impliesSelector, usableTerms } from "./implied.ts";
import type { PodNodes } from "./pod-nodes.ts";

/** A claim that a pod's constraints make on the nodes of a group. */
export interface GroupClaim {
  readonly claim: Claim;
  readonly group: Group;
  /** Known nodes of the group that the pod would be restricted to. */
  readonly nodes: readonly string[];
}

/** What a selection is judged by. */
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
 * What nodeSelector and required affinity of a pod claim (C3, C4, C4b, C5) on the nodes of groups that do not authorise it. Preferred
 * affinity, spreading, pod affinity and taints never count. A pod that is too large to compare claims nothing: steering and the bind decide.
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

/**
 * The groups with a node that a scheduler could choose for a pod; with `before` only where it could not choose that node for the pod as it
 * was. A pod that is too large to compare could be put anywhere, unless it says literally that it could not.
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

/** The known nodes of each group, and how many these are together. */
function membersOf(
  groups: readonly Group[],
  view: View,
): { readonly members: readonly (readonly JsonObject[])[]; readonly total: number } {
  const members = groups.map((group) => [...nodesOf(group, view)]);
  return { members, total: members.reduce((sum, { length }) => sum + length, 0) };
}

/** The nodes that the terms name, where every usable one names one; `undefined` where one does not. */
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

/** Whether the pod may also run on a node that none of these is; yes where there is too much to look at. */
function hasOthers(pod: PodNodes, candidates: readonly Candidate[], view: View): boolean {
  if (pod.exceeds(view.count("nodes"))) return true;
  const known = new Set(candidates.map(({ name }) => name));
  for (const node of view.list("nodes")) if (!known.has(nameOf(node)) && pod.selects(node)) return true;
  return false;
}

/**
 * The groups that keep the pod from all of the candidates. Where a node is only in groups that inform, the pod may run there: those
 * that enforce are no reason then.
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
