import type { NeedMore } from "../../../core/evaluate/decision.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import type { Need } from "../../../core/evaluate/need.ts";
import type { Json } from "../../../core/json.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Criteria, Limits } from "../criteria/criterion.ts";
import type { PlacementPolicy } from "../policy/policy.ts";
import { isPod } from "../select/eligibility.ts";
import { mergedObject, type PlacementContext } from "./context.ts";
import { merge } from "./merge.ts";
import { resolveReferences } from "./references.ts";
import { WorkBudgets } from "./work-budget.ts";

/** Merges what these policies want, in their order; or says what must be known first. */
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
  const budgets = new WorkBudgets(undefined, context.steps);
  const needs: Need[] = [];
  const object = mergedObject(draft, spec, isPod(workload), removed);
  const all = () => policies.map(({ criteria }) => criteria);
  for (const policy of policies) {
    const { ref, onConflict, failure } = policy;
    const budget = budgets.of(ref);
    const target = { ...object, limits: limitsNow(limits, draft.get(...spec), policy.criteria), budget };
    const criteria = budget.exceeded
      ? policy.criteria
      : resolveReferences(policy, target, context, all, findings);
    if ("need" in criteria) needs.push(...criteria.need);
    else merge(target, { ref, criteria, onConflict, failure, restoring: false }, findings);
  }
  return needs.length > 0 ? { need: needs } : undefined;
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
