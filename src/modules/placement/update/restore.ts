import type { Finding, PolicyRef } from "../../../core/evaluate/finding.ts";
import { policyKey, policyName } from "../../../core/evaluate/finding.ts";
import type { AdmissionRequest } from "../../../core/evaluate/request.ts";
import { type JsonObject, stringAt } from "../../../core/json.ts";
import { namespaceOf } from "../../../core/kubernetes/object.ts";
import { kindResource } from "../../../core/policy/kind.ts";
import { PROVENANCE } from "../../../core/provenance/origin.ts";
import type { View } from "../../../core/view/view.ts";
import { KnownTerms } from "../criteria/node-terms/known-term.ts";
import { KnownLists } from "../criteria/shape/known-list.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "../kinds.ts";
import { merge } from "../merge/merge.ts";
import type { Site } from "../merge/merge-policies.ts";
import { MOST_STEPS, WorkBudget } from "../merge/work-budget.ts";
import { isPod } from "../select/target.ts";
import { placementRequestsFrom } from "./injections.ts";

/**
 * A re-apply of an unchanged manifest strips what was injected before. It comes back: what the stored object's provenance names and
 * its spec still carries, unless the new object sets that itself. The provenance of the new object is never believed.
 * Gives the names of the policies of which something was put back.
 */
export function restore(
  { draft, spec, workload }: Site,
  view: View,
  old: JsonObject,
  findings: Finding[],
  only: (policy: string) => boolean = () => true,
): string[] {
  const start = draft.mark();
  const holders = new Map<string, PolicyRef>();
  const lists = new KnownLists();
  const terms = new KnownTerms();
  // As much as policies of the cluster and of the namespace had together when they put it there.
  const effort = new WorkBudget(2 * MOST_STEPS);
  const pod = isPod(workload);
  for (const wish of placementRequestsFrom(old, spec)) {
    if (!only(policyKey(wish.ref))) continue;
    const ref: PolicyRef = isThere(wish.ref, view, namespaceOf(draft.object))
      ? wish.ref
      : { ...wish.ref, gone: true };
    // A gate that has gone from a pod was opened. To close it again would keep the pod waiting for ever.
    const criteria = pod ? { ...wish.criteria, schedulingGates: [] } : wish.criteria;
    merge(
      { draft, spec, pod, limits: {}, holders, lists, terms, effort },
      { ...wish, ref, criteria },
      findings,
    );
  }
  const names = new Set<string>();
  for (let i = start; i < draft.mark(); i++) {
    const policy = draft.edits[i]?.finding?.policy;
    if (policy !== undefined) names.add(policyName(policy));
  }
  return [...names];
}

/** A policy of another namespace has put nothing here, whatever a note says. */
function isThere({ kind, namespace, name }: PolicyRef, view: View, here: string): boolean {
  if (namespace !== undefined && namespace !== here) return false;
  const found = [clusterPodSchedulingPolicy, podSchedulingPolicy].find((one) => one.kind === kind);
  return found !== undefined && view.get(kindResource(found), namespace ?? "", name) !== undefined;
}

/** What of a spec can't change where nothing new is taken; tolerations may be added even there. */
const FIXED = [
  "nodeSelector",
  "nodeName",
  "schedulerName",
  "affinity",
  "topologySpreadConstraints",
  "priorityClassName",
  "runtimeClassName",
];

/**
 * The same for an object that takes nothing new. There only the whole of what is stored is right: if the new object says
 * something else beside, the API server will refuse it, and that should be for what the user wrote.
 */
export function restoreWhole(site: Site, view: View, old: JsonObject, findings: Finding[]): string[] {
  const { draft, spec } = site;
  const start = draft.mark();
  const told = findings.length;
  const names = restore(site, view, old, findings);
  if (names.length === 0 || !draft.changed(FIXED.map((field) => [...spec, field]))) return names;
  draft.undo(start);
  findings.length = told;
  return [];
}

/**
 * Whoever rolls an object back expects to see what it was, so he is told that something was put back. By the request alone a roll-back
 * looks like others; but it does not say which program makes it, as kubectl does for all that people repeat every minute, and it comes from a
 * person, or brings an old note with it. Controllers do neither, and are told nothing.
 */
export function rollbackFinding(request: AdmissionRequest, names: readonly string[]): Finding | undefined {
  const { options, object, oldObject, userInfo } = request;
  if (names.length === 0 || options === undefined) return undefined;
  if (stringAt(options, "fieldManager") !== undefined) return undefined;
  const place = ["metadata", "annotations", PROVENANCE];
  const sameNote = stringAt(object, ...place) === stringAt(oldObject, ...place);
  if (sameNote && userInfo.username.startsWith("system:")) return undefined;
  return {
    rule: "restore",
    outcome: "skipped",
    code: "USHER-P21",
    message: `what was put there by policy ${names.join(", ")} was put back, all else is as you sent it; to take it out, delete or change the policy and reapply`,
    warn: 50,
  };
}
