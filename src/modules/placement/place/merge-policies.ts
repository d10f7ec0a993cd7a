import type { NeedMore } from "../../../core/decision/decision.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import { type Fact, failureOf, type Need } from "../../../core/decision/need.ts";
import { type Json, listAt } from "../../../core/json.ts";
import { isPod } from "../../../core/kubernetes/workloads.ts";
import type { Access, Context } from "../../../core/module/module.ts";
import type { Path } from "../../../core/path.ts";
import type { PolicyRef } from "../../../core/policy/policy-ref.ts";
import { policyName } from "../../../core/policy/policy-ref.ts";
import {
  type MergeContext,
  mergedObject,
  type PlacementContext,
  type PlacementRequest,
} from "../criteria/context.ts";
import { CRITERIA } from "../criteria/criteria.ts";
import type { Criteria, Criterion, Limits, Reference, ReferenceContext } from "../criteria/criterion.ts";
import { labelsOf } from "../criteria/node-selector.ts";
import { REQUIRED_TERMS } from "../criteria/node-term.ts";
import { Report, reportBudgetExceeded } from "../criteria/report.ts";
import { type Size, WorkLimits, workOfMerge } from "../criteria/work-limit.ts";
import type { PlacementPolicy } from "../policy/policy.ts";

/** Merges the placement requests of these policies, in order; or returns needs. */
export function mergePolicies(
  context: Context,
  { draft, spec, workload }: PlacementContext,
  limits: Limits,
  policies: readonly PlacementPolicy[],
  findings: Finding[],
  removed?: ReadonlySet<string>,
): NeedMore | undefined {
  // Most objects are selected by none.
  if (policies.length === 0) return undefined;
  const work = new WorkLimits();
  const needs: Need[] = [];
  const object = mergedObject(draft, spec, isPod(workload), removed);
  let labels: ReadonlyMap<string, string> | undefined;
  const wantedLabels = () => {
    labels ??= labelsOf(policies.map(({ criteria }) => criteria));
    return labels;
  };
  for (const policy of policies) {
    const { ref, onConflict, failure } = policy;
    const limit = work.of(ref);
    const target = { ...object, limits: limitsNow(limits, draft.get(...spec), policy.criteria), limit };
    const request = { ref, criteria: policy.criteria, onConflict, failure, restoring: false };
    if (!fits(target, policy.size)) {
      reportBudgetExceeded(target, request, findings);
      continue;
    }
    const criteria = resolveReferences(policy, target, context, wantedLabels, findings);
    if ("need" in criteria) needs.push(...criteria.need);
    else merge(target, { ...request, criteria }, findings);
  }
  return needs.length > 0 ? { need: needs } : undefined;
}

/** Whether values of this size may be merged into the object as it is now: decided before the merge begins. */
export function fits({ draft, spec, terms, limit }: MergeContext, wanted: Size): boolean {
  const size = terms.sizeOf(listAt(draft.object, ...spec, ...REQUIRED_TERMS));
  // Terms that can't be read are not compared with anything.
  return limit.admits(workOfMerge(wanted, typeof size === "string" ? { terms: 0, values: 0 } : size));
}

/**
 * Merges a placement request into the object, criterion by criterion: what the pod has is kept, the rest is added. What is skipped is
 * reported; a criterion with a `violated` finding is undone whole, so that no half of it is seen by the policies that follow.
 */
export function merge(target: MergeContext, request: PlacementRequest, findings: Finding[]): void {
  const { draft } = target;
  for (const { criterion, prepared } of request.criteria) {
    const [mark, reported] = [draft.mark(), findings.length];
    criterion.merge(target, prepared, new Report(target, request, criterion, findings));
    if (isRefused(findings, reported)) draft.undo(mark);
  }
}

function isRefused(findings: readonly Finding[], from: number): boolean {
  for (let i = from; i < findings.length; i++) if (findings[i]?.outcome === "violated") return true;
  return false;
}

/** The limits of a pod's spec as it is now, for one policy. */
export function limitsNow(limits: Limits, podSpec: Json | undefined, criteria: Criteria): Limits {
  let now = limits;
  for (const { criterion } of criteria) {
    if (limits.immutable[criterion.name] !== undefined) continue;
    const excluded = criterion.excluded?.(podSpec, criteria, limits);
    if (excluded === undefined) continue;
    const { name } = criterion;
    const impossible = [...(now.impossible ?? []), name];
    now = { ...now, immutable: { ...now.immutable, [name]: excluded }, impossible };
  }
  return now;
}

/** Read by name, and only if a policy that selects an object names one. */
export const REFERENCE_ACCESS: readonly Access[] = CRITERIA.flatMap(({ reference }) =>
  reference === undefined ? [] : [reference.access],
).sort((a, b) => (a.group < b.group ? -1 : 1));

interface Referring {
  readonly ref: PolicyRef;
  readonly failure: "Ignore" | "Fail";
  readonly criteria: Criteria;
}

/** The criteria of a policy without those that name a missing object; or needs. */
export function resolveReferences(
  policy: Referring,
  { draft, spec, limits }: MergeContext,
  { view, facts }: Context,
  wantedLabels: () => ReadonlyMap<string, string>,
  findings: Finding[],
): Criteria | { readonly need: readonly Need[] } {
  const needs: Need[] = [];
  const unusable = new Set<Criterion>();
  for (const { criterion, value } of policy.criteria) {
    const { reference } = criterion;
    // Skip fields that will not be written.
    if (reference === undefined || limits.immutable[criterion.name] !== undefined) continue;
    const path = [...spec, ...criterion.path];
    const present = draft.get(...path);
    if (present !== undefined && present !== null && present !== "") continue;
    const name = String(value);
    const need: Need = { get: { resource: reference.resource, name } };
    const known = view.get(reference.resource, "", name);
    const fact: Fact | undefined = known === undefined ? facts.of(need) : { found: known, complete: true };
    if (fact === undefined) {
      needs.push(need);
      continue;
    }
    const wrong = wrongWith(reference, name, fact, { podSpec: draft.get(...spec), wantedLabels });
    if (wrong === undefined) continue;
    unusable.add(criterion);
    findings.push(findingOf(policy, criterion, wrong, path));
  }
  if (needs.length > 0) return { need: needs };
  return unusable.size === 0
    ? policy.criteria
    : policy.criteria.filter(({ criterion }) => !unusable.has(criterion));
}

interface Wrong {
  readonly outcome: "skipped" | "failed";
  readonly code: string;
  readonly why: string;
}

function wrongWith(
  { kind, conflict }: Reference,
  name: string,
  fact: Fact,
  context: ReferenceContext,
): Wrong | undefined {
  const failure = failureOf(fact);
  if (failure !== undefined)
    return { outcome: "failed", code: "USHER-P20", why: `can't get ${kind} ${name}: ${failure}` };
  if (!("found" in fact)) return { outcome: "skipped", code: "USHER-P20", why: `${kind} ${name} not found` };
  const conflicting = conflict?.(fact.found, name, context);
  return conflicting === undefined ? undefined : { outcome: "skipped", ...conflicting };
}

function findingOf(
  { ref, failure }: Referring,
  { rule }: Criterion,
  { outcome, code, why }: Wrong,
  path: Path,
): Finding {
  const common = { policy: ref, rule, code, path };
  const policy = `policy ${policyName(ref)}`;
  return failure === "Fail"
    ? { ...common, outcome: "violated", message: `${policy} refuses this object: ${why}` }
    : { ...common, outcome, message: `${rule} of ${policy} skipped: ${why}`, warn: 70 };
}
