import type { Installation } from "../../../core/installation/installation.ts";
import type { JsonObject } from "../../../core/json.ts";
import { idle, PROBLEM, type Problem } from "../../../core/policy/problem.ts";
import type { View } from "../../../core/view/view.ts";
import { groupsIn } from "../groups/groups.ts";
import { readOverride } from "../groups/override.ts";
import { OVERRIDES, READERS } from "../groups/policy.ts";

/** Checks of an override beyond the schema, and why it may not have the intended effect. */
export function checkOverride(
  object: JsonObject,
  view: View,
  installation: Installation | undefined,
): readonly Problem[] {
  const problems = READERS[OVERRIDES]?.(object).problems ?? [];
  const override = readOverride(object);
  if (override === undefined || installation === undefined) return problems;
  const missing = missingGroup(override.group, view, installation);
  return missing === undefined ? problems : [...problems, idle(PROBLEM.noEffect, ["spec", "group"], missing)];
}

/** Why an override of this group weakens nothing. */
export function missingGroup(group: string, view: View, installation: Installation): string | undefined {
  const names = groupsIn(view, installation)
    .at(view, undefined)
    .map(({ name }) => name);
  return names.includes(group)
    ? undefined
    : `there is no group ${group}, so nothing is overridden; the groups are: ${names.join(", ")}`;
}
