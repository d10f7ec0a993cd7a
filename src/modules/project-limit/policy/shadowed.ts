import { type JsonObject, listAt } from "../../../core/json.ts";
import { type Problem, warningProblem } from "../../../core/policy/problem.ts";
import type { LimitRule } from "./policy.ts";

/**
 * Rules that can never match, because an earlier one matches every user that they do: the first match counts. Sure, not complete: a rule
 * that several earlier ones cover together is not found.
 */
export function shadowedRules(spec: JsonObject, rules: readonly LimitRule[]): Problem[] {
  return listAt(spec, "limits").flatMap((_, i) => {
    const rule = rules[i];
    if (rule === undefined) return [];
    const earlier = rules.slice(0, i).findIndex((other) => covers(other, rule));
    if (earlier < 0) return [];
    const message = `can never match: limits[${earlier}] matches the same users and comes first`;
    return [warningProblem(["spec", "limits", i], message)];
  });
}

/** Whether each user that the second rule matches is one that the first matches. */
function covers(wide: LimitRule, narrow: LimitRule): boolean {
  for (const [key, value] of wide.selector) if (narrow.selector.get(key) !== value) return false;
  return includes(wide.users, narrow.users) && includes(wide.groups, narrow.groups);
}

/** Of a list any must match, and an absent one does not narrow. */
function includes(wide: ReadonlySet<string> | undefined, narrow: ReadonlySet<string> | undefined): boolean {
  if (wide === undefined) return true;
  return narrow !== undefined && [...narrow].every((one) => wide.has(one));
}
