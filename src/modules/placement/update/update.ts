import { allow, type Result } from "../../../core/evaluate/decision.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import { policyKey } from "../../../core/evaluate/finding.ts";
import { type JsonObject, stringAt } from "../../../core/json.ts";
import type { Context } from "../../../core/module/module.ts";
import { renewedFrom } from "../../../core/provenance/origin.ts";
import type { Site } from "../merge/site.ts";
import { decide, type Policies, refuses, traceAll, unclearFindings } from "../place/decision.ts";
import type { PlacementPolicy } from "../policy/policy.ts";
import { type Selection, select } from "../select/select.ts";
import { notTargeted } from "../select/target.ts";
import { inject } from "./inject.ts";
import { injectionsOf } from "./injections.ts";
import { mutabilityOf } from "./mutability.ts";
import { consumeReapply } from "./reapply.ts";
import { notRenewed, renew } from "./renew.ts";
import { restore, restoreWhole, rollbackFinding } from "./restore.ts";

const NOTHING_NEW =
  "on update it restores what it had added, and adds nothing new (spec.onUpdate is Restore)";

/**
 * An UPDATE gets nothing new, or a re-apply of an unchanged manifest would roll out a fleet the day a policy appears. What it lost is
 * restored; policies with `onUpdate: Inject` are applied as they are now; a reapply gets what a new object would get.
 */
export function placeUpdated(context: Context, site: Site, policies: Policies, old: JsonObject): Result {
  const { draft, workload, labels } = site;
  const { view, steps, request } = context;
  const start = draft.mark();
  const mutability = mutabilityOf(workload, old);
  const touched = () => draft.changed([site.spec, [...workload.template, "metadata", "labels"]]);
  const reapply = consumeReapply(draft) || isRenewedFrom(draft.object, old);
  const findings: Finding[] = [];
  const restoring = { site, view, old, steps };
  if ("immutable" in mutability) {
    traceAll(context, policies, mutability.immutable);
    addRollback(findings, rollbackFinding(request, restoreWhole(restoring, findings)));
    if (reapply) findings.push(notRenewed(mutability.immutable));
    return allow(findings);
  }
  const exempt = (policy: PlacementPolicy) =>
    notTargeted(policy, workload) ?? (reapply || policy.onUpdate === "Inject" ? undefined : NOTHING_NEW);
  const index = reapply || context.trace !== undefined ? policies.all : policies.injecting;
  const selected = select(index, labels, context, exempt);
  if ("need" in selected) return selected;
  // Comparing large objects costs more than all the rest, and mostly no policy refuses anything.
  const selection = reapply || isLenient(selected) || touched() ? selected : lenient(selected);
  findings.push(...unclearFindings(selection));
  if (refuses(findings)) return decide(draft, start, findings);
  traceDeleted(context, site, policies, old);
  const reported: Finding[] = [];
  const lost = restore(restoring, reported);
  const update = { context, site, old, limits: mutability.limits, findings };
  if (reapply) return renew(update, selection, reported) ?? decide(draft, start, findings);
  // Of policies that inject what they want now counts, and that is reported when it is merged.
  const injecting = new Set(selection.wanting.map(({ ref }) => policyKey(ref)));
  findings.push(
    ...reported.filter(({ policy }) => policy === undefined || !injecting.has(policyKey(policy))),
  );
  addRollback(findings, rollbackFinding(request, lost));
  return inject(update, selection) ?? decide(draft, start, findings);
}

/** Asked about one update twice, the annotation of the first time is gone. */
function isRenewedFrom(object: JsonObject, old: JsonObject): boolean {
  const version = stringAt(old, "metadata", "resourceVersion") ?? "";
  return version !== "" && renewedFrom(object) === version;
}

/**
 * An UPDATE of a label or a finalizer changes nothing about placement, and no policy refuses it for what was there before: otherwise a
 * policy written today would keep controllers from yesterday's workloads.
 */
function lenient({ wanting, unclear }: Selection): Selection {
  const open = (policy: PlacementPolicy): PlacementPolicy =>
    refusesNothing(policy)
      ? policy
      : { ...policy, requiredLabels: [], onConflict: "Skip", failure: "Ignore" };
  return {
    wanting: wanting.map(open),
    unclear: unclear.map((one) => ({ ...one, policy: open(one.policy) })),
  };
}

function isLenient({ wanting, unclear }: Selection): boolean {
  return wanting.every(refusesNothing) && unclear.every(({ policy }) => refusesNothing(policy));
}

function refusesNothing({ onConflict, failure }: PlacementPolicy): boolean {
  return onConflict === "Skip" && failure === "Ignore";
}

/** Deleted policies are in no index, so the trace names them here. */
function traceDeleted({ trace }: Context, { spec }: Site, { all }: Policies, old: JsonObject): void {
  if (trace === undefined) return;
  const existing = new Set([...all.items].map(({ ref }) => policyKey(ref)));
  for (const { ref } of injectionsOf(old, spec)) {
    if (existing.has(policyKey(ref))) continue;
    trace({
      policy: ref,
      applies: "applies",
      why: "it was deleted; what it had added stays until a reapply",
    });
  }
}

function addRollback(findings: Finding[], rollback: Finding | undefined): void {
  if (rollback !== undefined) findings.push(rollback);
}
