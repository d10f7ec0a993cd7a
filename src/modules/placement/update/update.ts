import { allow, type NeedMore, type Result } from "../../../core/evaluate/decision.ts";
import type { Draft } from "../../../core/evaluate/draft.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import { policyKey } from "../../../core/evaluate/finding.ts";
import { equal, type JsonObject, stringAt } from "../../../core/json.ts";
import type { Context } from "../../../core/module/module.ts";
import { atPointer } from "../../../core/path.ts";
import { type Origin, provenanceOf, renewedFrom } from "../../../core/provenance/origin.ts";
import type { FieldLimits } from "../criteria/criteria.ts";
import {
  conclude,
  mergeAll,
  type Policies,
  refuses,
  type Site,
  sayOfAll,
  unclearFindings,
} from "../merge/merge-policies.ts";
import type { PlacementPolicy } from "../policy/policy.ts";
import { type Selection, select } from "../select/select.ts";
import { isPod, notTargeted } from "../select/target.ts";
import { placementRequestsFrom } from "./injections.ts";
import { opennessOf } from "./mutability.ts";
import { outdated, requiredTerms, takeable } from "./outdated.ts";
import { consumeReapply } from "./reapply.ts";
import { removeInjection } from "./remove-injection.ts";
import { restore, restoreWhole, rollbackFinding } from "./restore.ts";

/** One UPDATE of an object that may be changed. */
interface Update {
  readonly context: Context;
  readonly site: Site;
  readonly old: JsonObject;
  readonly limits: FieldLimits;
  readonly findings: Finding[];
}

/**
 * An UPDATE gets nothing new, or a re-apply of an unchanged manifest would roll a fleet the day a policy appears. What it lost comes
 * back; policies with `onUpdate: Inject` are applied as they are now; and who asks for it gets what a new object would get.
 */
export function updated(context: Context, site: Site, policies: Policies, old: JsonObject): Result {
  const { draft, workload, labels } = site;
  const start = draft.mark();
  const openness = opennessOf(workload, old);
  // Asked about one update twice, usher finds the question gone that it has answered.
  const version = stringAt(old, "metadata", "resourceVersion") ?? "";
  const touched = draft.changed([site.spec, [...workload.template, "metadata", "labels"]]);
  const reapply = consumeReapply(draft) || (version !== "" && renewedFrom(draft.object) === version);
  const findings: Finding[] = [];
  if ("closed" in openness) {
    sayOfAll(context, policies, openness.closed);
    sayOfRollback(context, restoreWhole(site, context.view, old, findings), findings);
    if (reapply) findings.push(notReapplied(openness.closed));
    return allow(findings);
  }
  const apart = (policy: PlacementPolicy) =>
    notTargeted(policy, workload) ?? (reapply || policy.onUpdate === "Inject" ? undefined : NOTHING_NEW);
  const index = reapply || context.trace !== undefined ? policies.all : policies.injecting;
  const selected = select(index, labels, context, apart);
  if ("need" in selected) return selected;
  const selection = touched || reapply ? selected : lenient(selected);
  findings.push(...unclearFindings(selection));
  if (refuses(findings)) return conclude(draft, start, findings);
  sayOfGone(context, site, policies, old);
  const told: Finding[] = [];
  const lost = restore(site, context.view, old, told);
  const update: Update = { context, site, old, limits: openness.limits, findings };
  if (reapply) return placeAnew(update, selection, told) ?? conclude(draft, start, findings);
  // Of policies that inject what counts is what they want now, and that is told when it is merged.
  const injecting = new Set(selection.wanting.map(({ ref }) => policyKey(ref)));
  findings.push(...told.filter(({ policy }) => policy === undefined || !injecting.has(policyKey(policy))));
  const missing = inject(update, selection, lost);
  return missing ?? conclude(draft, start, findings);
}

/**
 * Who changes a label or takes a finalizer away has said nothing about placement, and no policy refuses him for what was there before:
 * else a policy written today would keep controllers from yesterday's workloads.
 */
function lenient({ wanting, unclear }: Selection): Selection {
  const open = (policy: PlacementPolicy): PlacementPolicy =>
    policy.onConflict === "Skip" && policy.failure === "Ignore"
      ? policy
      : { ...policy, demands: [], onConflict: "Skip", failure: "Ignore" };
  return {
    wanting: wanting.map(open),
    unclear: unclear.map((one) => ({ ...one, policy: open(one.policy) })),
  };
}

const NOTHING_NEW =
  "an update gets nothing new of it, only what it had and has lost (spec.onUpdate is Restore)";

/** What a policy wanted and does not want any more goes, what it wants now comes. */
function inject(update: Update, { wanting }: Selection, lost: readonly string[]): NeedMore | undefined {
  const { context, site, old, limits, findings } = update;
  sayOfRollback(context, lost, findings);
  if (wanting.length === 0) return undefined;
  const policies = new Map(wanting.map((policy) => [policyKey(policy.ref), policy]));
  const origins = originsOf(old);
  const gone = origins.flatMap((origin) => {
    const policy = policies.get(origin.policy);
    return policy === undefined ? [] : [outdated(origin, policy, old, site.spec)];
  });
  if (gone.some((origin) => Object.keys(requiredTerms(origin, site.spec).added).length > 0)) {
    // Requirements of several policies are combined in each term: all go, and those of the others come again.
    const others = origins.filter(({ policy }) => !policies.has(policy));
    takeOut(update, [...gone, ...others.map((origin) => requiredTerms(origin, site.spec))]);
    restore(site, context.view, old, findings, (policy) => !policies.has(policy));
  } else takeOut(update, gone);
  return mergeAll(context, site, limits, withoutGates(wanting, site), findings);
}

/** All that policies put there goes, all that they want now comes. Half of that would be a loss, so it is all or nothing. */
function placeAnew(
  update: Update,
  { wanting, unclear }: Selection,
  told: readonly Finding[],
): NeedMore | undefined {
  const { context, site, old, limits, findings } = update;
  const before = site.draft.mark();
  if (unclear.length > 0) {
    findings.push(...told, notReapplied("it can't be known which policies want this object"));
    return undefined;
  }
  takeOut(update, originsOf(old));
  const version = stringAt(old, "metadata", "resourceVersion") ?? "";
  if (version !== "") site.draft.renew(version);
  const missing = mergeAll(context, site, limits, withoutGates(wanting, site), findings);
  if (missing === undefined && findings.some(({ outcome }) => outcome === "failed")) {
    site.draft.undo(before);
    findings.push(...told, notReapplied("a part of what policies want can't be known or written"));
  }
  return missing;
}

function originsOf(object: JsonObject): Origin[] {
  return provenanceOf(object).filter(({ module }) => module === "placement");
}

/** As far as the API server lets it go. */
function takeOut({ site: { draft, spec }, limits }: Update, origins: readonly Origin[]): void {
  const start = draft.mark();
  const parts = origins.map((origin) => stillThere(draft, takeable(origin, limits, spec)));
  removeInjection(draft, parts, spec);
  if (draft.mark() > start) draft.disown(parts);
}

/**
 * What is set otherwise by now is not taken out. Asked about one update twice, usher finds the new value of a policy there, and it is
 * the policy's still.
 */
function stillThere(draft: Draft, origin: Origin): Origin {
  const set = origin.set.filter((place) =>
    equal(atPointer(draft.object, place), atPointer(draft.old, place)),
  );
  return { ...origin, set };
}

/** A pod that exists gets no gate any more, and that one was opened is no news. */
function withoutGates(policies: readonly PlacementPolicy[], { workload }: Site): readonly PlacementPolicy[] {
  if (!isPod(workload)) return policies;
  return policies.map((policy) =>
    policy.criteria.schedulingGates.length === 0
      ? policy
      : { ...policy, demands: [], criteria: { ...policy.criteria, schedulingGates: [] } },
  );
}

/** Policies that are gone can't say why they are still at work, so it is said for them. */
function sayOfGone({ trace }: Context, { spec }: Site, { all }: Policies, old: JsonObject): void {
  if (trace === undefined) return;
  const there = new Set([...all.items].map(({ ref }) => policyKey(ref)));
  for (const { ref } of placementRequestsFrom(old, spec)) {
    if (there.has(policyKey(ref))) continue;
    trace({
      policy: ref,
      applies: "applies",
      why: "it is gone; what it had put there stays until a reapply",
    });
  }
}

function sayOfRollback({ request }: Context, lost: readonly string[], findings: Finding[]): void {
  const finding = rollbackFinding(request, lost);
  if (finding !== undefined) findings.push(finding);
}

function notReapplied(why: string): Finding {
  return {
    rule: "reapply",
    outcome: "skipped",
    code: "USHER-P22",
    message: `this object was not placed anew: ${why}`,
    warn: 75,
  };
}
