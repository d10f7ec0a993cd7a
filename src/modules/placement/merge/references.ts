import type { Finding, PolicyRef } from "../../../core/evaluate/finding.ts";
import { policyName } from "../../../core/evaluate/finding.ts";
import { type Fact, failureOf, type Need } from "../../../core/evaluate/need.ts";
import type { Access, Context } from "../../../core/module/module.ts";
import type { Path } from "../../../core/path.ts";
import { CRITERIA } from "../criteria/criteria.ts";
import type { Criteria, Criterion, Reference, ReferenceContext } from "../criteria/criterion.ts";
import type { MergeContext } from "./context.ts";

/** Read by name, and only where a policy that selects an object names one. */
export const REFERENCE_ACCESS: readonly Access[] = CRITERIA.flatMap(({ reference }) =>
  reference === undefined ? [] : [reference.access],
).sort((a, b) => (a.group < b.group ? -1 : 1));

interface Referring {
  readonly ref: PolicyRef;
  readonly failure: "Ignore" | "Fail";
  readonly criteria: Criteria;
}

/** The criteria of a policy without those that name a missing object; or what must be fetched first. */
export function resolveReferences(
  policy: Referring,
  { draft, spec, limits, budget }: MergeContext,
  { view, facts }: Context,
  all: () => readonly Criteria[],
  findings: Finding[],
): Criteria | { readonly need: readonly Need[] } {
  const needs: Need[] = [];
  const unusable = new Set<Criterion>();
  for (const { criterion, value } of policy.criteria) {
    const { reference } = criterion;
    // What is not written need not exist.
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
    const wrong = wrongWith(reference, name, fact, () => ({
      podSpec: draft.get(...spec),
      criteria: all(),
      budget,
    }));
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
  context: () => ReferenceContext,
): Wrong | undefined {
  const failure = failureOf(fact);
  if (failure !== undefined)
    return { outcome: "failed", code: "USHER-P20", why: `can't get ${kind} ${name}: ${failure}` };
  if (!("found" in fact)) return { outcome: "skipped", code: "USHER-P20", why: `${kind} ${name} not found` };
  const conflicting = conflict?.(fact.found, name, context());
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
