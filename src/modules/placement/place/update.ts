import { allow, type NeedMore, type Result } from "../../../core/decision/decision.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import { type JsonObject, stringAt } from "../../../core/json.ts";
import { isPod } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import { policyKey } from "../../../core/policy/policy-ref.ts";
import { annotationOf, readProvenance } from "../../../core/provenance/annotation.ts";
import { consumeReapply, isReapply } from "../../../core/provenance/reapply.ts";
import type { PlacementContext } from "../criteria/context.ts";
import { CRITERIA } from "../criteria/criteria.ts";
import type { Limits } from "../criteria/criterion.ts";
import type { PlacementPolicy } from "../policy/policy.ts";
import { notTargeted } from "../select/eligibility.ts";
import { type Selection, select } from "../select/select.ts";
import { decide, type Policies, refuses, traceAll, unclearFindings } from "./decision.ts";
import {
  ALL_STALE,
  type Carrying,
  carryInjections,
  injectionsIn,
  keepStoredLists,
  staleParts,
} from "./injections.ts";
import { mergePolicies } from "./merge-policies.ts";
import { mutabilityOf } from "./mutability.ts";

const NOTHING_NEW =
  "on update it restores what it had added, and adds nothing new (spec.onUpdate is Restore)";

/**
 * An UPDATE gets nothing new, otherwise a re-apply of an unchanged manifest would roll out a fleet the day a policy
 * appears. Lost injections are restored; policies with `onUpdate: Inject` are applied in their current form; a reapply
 * gets what a new object would get.
 */
export function placeUpdated(
  context: Context,
  placement: PlacementContext,
  policies: Policies,
  old: JsonObject,
): Result {
  const { draft, workload, labels, spec } = placement;
  const { view, request } = context;
  const start = draft.mark();
  const mutability = mutabilityOf(workload, old);
  const touched = () => draft.changed([spec, [...workload.template, "metadata", "labels"]]);
  const reapply = isReapply(draft);
  consumeReapply(draft);
  const findings: Finding[] = [];
  const carrying = { placement, view, old };
  if ("immutable" in mutability) {
    traceAll(context, policies, mutability.immutable);
    addRollback(findings, request, restoreWhole(carrying, findings));
    if (reapply) findings.push(reapplySkipped(mutability.immutable));
    return allow(findings);
  }
  const exempt = (policy: PlacementPolicy) =>
    notTargeted(policy, workload) ?? (reapply || policy.onUpdate === "Inject" ? undefined : NOTHING_NEW);
  const index = reapply || context.trace !== undefined ? policies.all : policies.injecting;
  const selected = select(index, labels, context, exempt);
  if ("need" in selected) return selected;
  // Comparing large objects costs more than all the rest, and few policies refuse anything.
  const selection = reapply || isLenient(selected) || touched() ? selected : lenient(selected);
  findings.push(...unclearFindings(selection));
  if (refuses(findings)) return decide(draft, start, findings);
  traceDeleted(context, placement, policies, old);
  const update = { context, carrying, limits: mutability.limits, findings };
  const missing = reapply ? reapplyPolicies(update, selection) : injectPolicies(update, selection);
  return missing ?? decide(draft, start, findings);
}

/** One UPDATE of an object that may be changed. */
interface Update {
  readonly context: Context;
  readonly carrying: Carrying;
  readonly limits: Limits;
  readonly findings: Finding[];
}

/** Restores injections, without stale parts of policies that inject, and adds their current values. */
function injectPolicies(
  { context, carrying, limits, findings }: Update,
  { wanting }: Selection,
): NeedMore | undefined {
  const { placement, old } = carrying;
  const start = placement.draft.mark();
  const reported: Finding[] = [];
  const { restored, removed } = carryInjections(carrying, reported, staleParts(wanting), limits);
  // For policies that inject, the current values count, and are reported when they are merged.
  const injecting = new Set(wanting.map(({ ref }) => policyKey(ref)));
  findings.push(
    ...reported.filter(({ policy }) => policy === undefined || !injecting.has(policyKey(policy))),
  );
  addRollback(findings, context.request, restored);
  const policies = withoutConsumed(wanting, placement);
  const missing = mergePolicies(context, placement, limits, policies, findings, removed);
  keepStoredLists(placement, old, start, "meaning");
  return missing;
}

/**
 * A reapply removes all injections and adds all current ones. Half of that would be a loss, so it is all or nothing: if
 * it can't be done, the injections stay.
 */
function reapplyPolicies(
  { context, carrying, limits, findings }: Update,
  { wanting, unclear }: Selection,
): NeedMore | undefined {
  const { placement, old } = carrying;
  const reported: Finding[] = [];
  const start = placement.draft.mark();
  carryInjections(carrying, reported);
  if (unclear.length > 0) {
    findings.push(...reported, reapplySkipped("can't determine which policies select this object"));
    return undefined;
  }
  const before = placement.draft.mark();
  const { removed } = carryInjections(carrying, [], ALL_STALE, limits);
  const policies = withoutConsumed(wanting, placement);
  const missing = mergePolicies(context, placement, limits, policies, findings, removed);
  if (missing === undefined && findings.some(({ outcome }) => outcome === "failed")) {
    placement.draft.undo(before);
    findings.push(...reported, reapplySkipped("part of what policies want can't be determined or written"));
  } else keepStoredLists(placement, old, start, "order");
  return missing;
}

function reapplySkipped(why: string): Finding {
  return {
    rule: "reapply",
    outcome: "skipped",
    code: "USHER-P22",
    message: `reapply skipped: ${why}`,
    warn: 75,
  };
}

/** An existing pod gets nothing that controllers remove from it, without a finding. */
function withoutConsumed(
  policies: readonly PlacementPolicy[],
  { workload }: PlacementContext,
): readonly PlacementPolicy[] {
  if (!isPod(workload)) return policies;
  return policies.map((policy) => {
    const criteria = policy.criteria.filter(({ criterion }) => criterion.consumedByPod !== true);
    return criteria.length === policy.criteria.length ? policy : { ...policy, requiredLabels: [], criteria };
  });
}

/** The immutable fields of a pod's spec that accepts nothing new. */
const FIXED: ReadonlySet<string> = new Set(
  CRITERIA.filter(({ mutability }) => !mutability.ungatedPod).map(({ path }) => String(path[0])),
);

/**
 * Restores an object that accepts nothing new. Only the complete stored state is right there: if the new object changes
 * something else, the API server will refuse it, and that should be for the user's change.
 */
function restoreWhole(carrying: Carrying, findings: Finding[]): readonly string[] {
  const { draft, spec } = carrying.placement;
  const start = draft.mark();
  const reported = findings.length;
  const { restored } = carryInjections(carrying, findings);
  keepStoredLists(carrying.placement, carrying.old, start, "meaning");
  if (restored.length === 0 || !draft.changed([...FIXED].map((field) => [...spec, field]))) return restored;
  draft.undo(start);
  findings.length = reported;
  return [];
}

/**
 * A user who rolls an object back expects to see its old state, so a restore is reported. By the request alone a
 * rollback looks like other updates; but it names no field manager, unlike kubectl's repeated commands, and it comes
 * from a user, or brings an old annotation. Controllers do neither, and get no warning.
 */
function addRollback(findings: Finding[], request: AdmissionRequest, names: readonly string[]): void {
  const { options, object, oldObject, userInfo } = request;
  if (names.length === 0 || options === undefined) return;
  if (stringAt(options, "fieldManager") !== undefined) return;
  if (annotationOf(object) === annotationOf(oldObject) && userInfo.username.startsWith("system:")) return;
  findings.push({
    rule: "restore",
    outcome: "skipped",
    code: "USHER-P21",
    message: `restored what policy ${names.join(", ")} had added; everything else is as you sent it. To remove it, delete or change the policy and reapply`,
    warn: 50,
  });
}

/**
 * An UPDATE of a label or a finalizer does not affect placement, and no policy refuses it for existing values:
 * otherwise a policy written today would block controllers of yesterday's workloads.
 */
function lenient({ wanting, unclear, withoutValue }: Selection): Selection {
  const open = (policy: PlacementPolicy): PlacementPolicy =>
    refusesNothing(policy)
      ? policy
      : { ...policy, requiredLabels: [], onConflict: "Skip", failure: "Ignore" };
  return {
    wanting: wanting.map(open),
    unclear: unclear.map((one) => ({ ...one, policy: open(one.policy) })),
    withoutValue,
  };
}

function isLenient({ wanting, unclear }: Selection): boolean {
  return wanting.every(refusesNothing) && unclear.every(({ policy }) => refusesNothing(policy));
}

function refusesNothing({ onConflict, failure }: PlacementPolicy): boolean {
  return onConflict === "Skip" && failure === "Ignore";
}

/** Deleted policies are in no index, so the trace names them here. */
function traceDeleted(
  { trace }: Context,
  { spec }: PlacementContext,
  { all }: Policies,
  old: JsonObject,
): void {
  if (trace === undefined) return;
  const known = new Set([...all.items].map(({ ref }) => policyKey(ref)));
  for (const { ref } of injectionsIn(old, readProvenance(old), spec)) {
    if (known.has(policyKey(ref))) continue;
    known.add(policyKey(ref));
    trace({
      policy: ref,
      applies: "applies",
      why: "it was deleted; what it had added stays until a reapply",
    });
  }
}
