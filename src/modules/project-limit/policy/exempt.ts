import type { UserInfo } from "../../../core/evaluate/request.ts";
import type { Limits } from "./policy.ts";

/** Whether the user is never limited, and may set and change requesters. */
export function isExempt({ exempt }: Limits, { username, groups }: UserInfo): boolean {
  return exempt.users.has(username) || groups.some((group) => exempt.groups.has(group));
}

export function isTrusted({ trustedAnnotators }: Limits, { username }: UserInfo): boolean {
  return trustedAnnotators.has(username);
}

/** Whether a rule may ever limit ordinary users; without rules not even their User object is read. */
export function limitsUsers({ rules }: Limits): boolean {
  return rules.length > 0;
}
