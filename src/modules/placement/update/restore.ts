import type { Finding, PolicyRef } from "../../../core/evaluate/finding.ts";
import { policyKey, policyName } from "../../../core/evaluate/finding.ts";
import type { AdmissionRequest } from "../../../core/evaluate/request.ts";
import type { StepCounter } from "../../../core/evaluate/step-counter.ts";
import { type JsonObject, stringAt } from "../../../core/json.ts";
import { namespaceOf } from "../../../core/kubernetes/object.ts";
import { kindResource } from "../../../core/policy/kind.ts";
import { PROVENANCE } from "../../../core/provenance/origin.ts";
import type { View } from "../../../core/view/view.ts";
import { CRITERIA } from "../criteria/criteria.ts";
import { NO_LIMITS } from "../criteria/criterion.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "../kinds.ts";
import { merge } from "../merge/merge.ts";
import type { Site } from "../merge/site.ts";
import { mergedObject } from "../merge/target.ts";
import { MAX_STEPS, WorkBudget } from "../merge/work-budget.ts";
import { isPod } from "../select/target.ts";
import { injectionsOf } from "./injections.ts";

/** What injections are restored from. */
interface Restoring {
  readonly site: Site;
  readonly view: View;
  readonly old: JsonObject;
  readonly steps: StepCounter | undefined;
}

/**
 * A re-apply of an unchanged manifest strips injections. They are restored: what the stored object's provenance names and its spec still
 * has, unless the new object sets it. The provenance of the new object is never trusted. Gives the names of the policies of which
 * something was restored.
 */
export function restore(
  { site: { draft, spec, workload }, view, old, steps }: Restoring,
  findings: Finding[],
  only: (policy: string) => boolean = () => true,
): string[] {
  const start = draft.mark();
  const pod = isPod(workload);
  // As much as cluster policies and namespaced ones had together when they were applied.
  const budget = new WorkBudget(2 * MAX_STEPS, steps);
  const target = { ...mergedObject(draft, spec, pod), limits: NO_LIMITS, budget };
  for (const request of injectionsOf(old, spec)) {
    if (!only(policyKey(request.ref))) continue;
    const ref: PolicyRef = exists(request.ref, view, namespaceOf(draft.object))
      ? request.ref
      : { ...request.ref, gone: true };
    const criteria = pod
      ? request.criteria.filter(({ criterion }) => criterion.consumedByPod !== true)
      : request.criteria;
    merge(target, { ...request, ref, criteria }, findings);
  }
  const names = new Set<string>();
  for (let i = start; i < draft.mark(); i++) {
    const policy = draft.edits[i]?.finding?.policy;
    if (policy !== undefined) names.add(policyName(policy));
  }
  return [...names];
}

/** A policy of another namespace has injected nothing here, whatever provenance says. */
function exists({ kind, namespace, name }: PolicyRef, view: View, here: string): boolean {
  if (namespace !== undefined && namespace !== here) return false;
  const found = [clusterPodSchedulingPolicy, podSchedulingPolicy].find((one) => one.kind === kind);
  return found !== undefined && view.get(kindResource(found), namespace ?? "", name) !== undefined;
}

/** The fields of a pod's spec that can't change where nothing new is taken. */
const FIXED = new Set(
  CRITERIA.filter(({ mutability }) => !mutability.ungatedPod).map(({ path }) => String(path[0])),
);

/**
 * The same for an object that takes nothing new. Only the whole of what is stored is right there: if the new object changes something
 * besides, the API server will refuse it, and that should be for what the user wrote.
 */
export function restoreWhole(restoring: Restoring, findings: Finding[]): string[] {
  const { draft, spec } = restoring.site;
  const start = draft.mark();
  const reported = findings.length;
  const names = restore(restoring, findings);
  if (names.length === 0 || !draft.changed([...FIXED].map((field) => [...spec, field]))) return names;
  draft.undo(start);
  findings.length = reported;
  return [];
}

/**
 * A user who rolls an object back expects to see what it was, so a restore is reported. By the request alone a rollback looks like other
 * updates; but it names no field manager, as kubectl does in all that is repeated every minute, and it comes from a person, or brings old
 * provenance. Controllers do neither, and get no warning.
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
    message: `restored what policy ${names.join(", ")} had added; everything else is as you sent it. To remove it, delete or change the policy and reapply`,
    warn: 50,
  };
}
