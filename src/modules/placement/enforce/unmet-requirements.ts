import type { JsonObject } from "../../../core/json.ts";
import type { Criteria, UnmetRequirement } from "../criteria/criterion.ts";
import { WorkBudget } from "../merge/work-budget.ts";

/**
 * What of a policy's requirements a pod's spec does not meet, judged by meaning: a stronger requirement meets a weaker one, a wider
 * toleration a narrower one. Preferences are not enforced. What exceeds the work budget is unmet.
 */
export function unmetRequirements(
  criteria: Criteria,
  podSpec: JsonObject | undefined,
  budget = new WorkBudget(),
): UnmetRequirement[] {
  return criteria.flatMap(({ criterion, value }) => criterion.unmet?.(podSpec, value, budget) ?? []);
}

/** True of a policy whose criteria are preferences, if any. */
export function requiresNothing(criteria: Criteria): boolean {
  return unmetRequirements(criteria, undefined).length === 0;
}
