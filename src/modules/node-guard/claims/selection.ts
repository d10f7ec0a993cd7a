import type { Fact, Facts, Need } from "../../../core/evaluate/need.ts";
import { isObject, type Json, type JsonObject } from "../../../core/json.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import type { PodPlacement } from "../../../core/kubernetes/selectors/node-selector.ts";
import type { View } from "../../../core/view/view.ts";
import type { Group } from "../groups/group.ts";
import { Feasibility, groupsOfNode, nodesOf, Selection } from "./candidates.ts";
import { CLAIMS, type Claim } from "./claim.ts";
import { impliesSelector, usableTerms } from "./implied.ts";

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
 * affinity, spreading, pod affinity and taints never count.
 */
export function selectionClaims(
  podSpec: Json | undefined,
  blocking: readonly Group[],
  { view, facts }: SelectionContext,
): SelectionClaims {
  const selection = new Selection(podSpec);
  if (blocking.length === 0 || !selection.constrained) return NONE;
  const names = pinnedNames(selection.placement);
  if (names !== undefined) return pinned(names, selection, blocking, { view, facts });
  const candidates = protectedCandidates(selection, blocking, view);
  const implied = blocking.filter(({ labelSelector }) => impliesSelector(selection.placement, labelSelector));
  if (candidates.length === 0)
    return { claims: implied.map((group) => ({ claim: CLAIMS.implied, group, nodes: [] })) };
  if (implied.length === 0 && hasOthers(selection, candidates, view)) return NONE;
  return {
    claims: restricted(candidates).map(({ group, nodes }) => ({
      claim: namesGroup(selection.placement, group) ? CLAIMS.exclusive : CLAIMS.incidental,
      group,
      nodes,
    })),
  };
}

/** Groups with a node that would take the pod. */
export function possibleGroups(podSpec: Json | undefined, groups: readonly Group[], view: View): Group[] {
  if (groups.length === 0) return [];
  const feasibility = new Feasibility(podSpec);
  return groups.filter((group) => {
    for (const node of nodesOf(group, view))
      if (feasibility.wouldTake(node) || feasibility.selection.exhausted) return true;
    return false;
  });
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
  selection: Selection,
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
    else if (isObject(fact.found) && selection.selects(fact.found)) {
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

function protectedCandidates(selection: Selection, blocking: readonly Group[], view: View): Candidate[] {
  const nodes = new Map<string, JsonObject>();
  for (const group of blocking)
    for (const node of nodesOf(group, view))
      if (!nodes.has(nameOf(node)) && selection.selects(node)) nodes.set(nameOf(node), node);
  return [...nodes].map(([name, node]) => ({ name, groups: groupsOfNode(blocking, node) }));
}

/** Whether the pod may also run on a node that none of these is; yes where there is too much to look at. */
function hasOthers(selection: Selection, candidates: readonly Candidate[], view: View): boolean {
  const known = new Set(candidates.map(({ name }) => name));
  for (const node of view.list("nodes"))
    if (selection.exhausted || (!known.has(nameOf(node)) && selection.selects(node))) return true;
  return selection.exhausted;
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
      found.set(group, [...(found.get(group) ?? []), name]);
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
