import { serviceAccountOf } from "../../../core/kubernetes/principals.ts";
import { idle, PROBLEM, type Problem } from "../../../core/policy/problem.ts";
import { isUserName } from "./limit.ts";
import type { LimitRule, ProjectLimits } from "./policy.ts";

/**
 * Rules that can never match, because an earlier one matches every user that they do, or because no rule is for those users. Sure, not
 * complete: a rule that several earlier ones cover together is not found.
 */
export function shadowedRules(rules: readonly LimitRule[], exempt: ProjectLimits["exempt"]): Problem[] {
  return rules.flatMap((rule, i) => {
    const earlier = rules.slice(0, i).findIndex((other) => covers(other, rule));
    const why =
      earlier >= 0 ? `limits[${earlier}] matches the same users and comes first` : forNobody(rule, exempt);
    return why === undefined
      ? []
      : [idle(PROBLEM.unreachable, ["spec", "limits", i], `can never match: ${why}`)];
  });
}

/** Service accounts and system users have their own maxima, and exempt users none. */
function forNobody({ users, groups }: LimitRule, exempt: ProjectLimits["exempt"]): string | undefined {
  if (users !== undefined && [...users].every((user) => exempt.users.has(user) || !isOrdinary(user)))
    return "its users are exempt, system users or service accounts";
  if (groups !== undefined && [...groups].every((group) => exempt.groups.has(group) || isOfAccounts(group)))
    return "its groups are exempt or those of service accounts";
  return undefined;
}

function isOrdinary(user: string): boolean {
  // Rules have no `users` if extensions are off.
  return isUserName(user, { extensions: true }) && serviceAccountOf(user) === undefined;
}

function isOfAccounts(group: string): boolean {
  return group === "system:serviceaccounts" || group.startsWith("system:serviceaccounts:");
}

/** Whether the first rule matches every user that the second one matches. */
function covers(wide: LimitRule, narrow: LimitRule): boolean {
  for (const [key, value] of wide.selector) if (narrow.selector.get(key) !== value) return false;
  return includes(wide.users, narrow.users) && includes(wide.groups, narrow.groups);
}

/** Of a list any must match, and an absent one does not narrow. */
function includes(wide: ReadonlySet<string> | undefined, narrow: ReadonlySet<string> | undefined): boolean {
  if (wide === undefined) return true;
  return narrow !== undefined && [...narrow].every((one) => wide.has(one));
}
