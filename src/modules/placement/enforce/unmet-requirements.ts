import type { Criteria, UnmetRequirement } from "../criteria/criterion.ts";
import { ComparedPod } from "../criteria/unmet.ts";
import { WorkLimit } from "../criteria/work-limit.ts";

/**
 * The requirements of a policy that a pod's spec does not meet, judged by meaning: a stronger requirement meets a weaker one, a wider
 * toleration a narrower one. Preferences are not enforced. Requirements that are too much to be compared are unmet.
 */
export function unmetRequirements(
  criteria: Criteria,
  pod: ComparedPod,
  limit = new WorkLimit(),
): UnmetRequirement[] {
  return criteria.flatMap(({ criterion, prepared }) => criterion.unmet?.(pod, prepared, limit) ?? []);
}

/** True of a policy whose criteria are preferences, if any. */
export function requiresNothing(criteria: Criteria): boolean {
  return unmetRequirements(criteria, new ComparedPod(undefined)).length === 0;
}
