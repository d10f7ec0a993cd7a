import type { UserInfo } from "../../../core/evaluate/request.ts";
import { serviceAccountOf } from "../../../core/kubernetes/principals.ts";
import type { ProjectLimits } from "./policy.ts";

/** Whether the user is never limited, and may set and change requesters. */
export function isExempt({ exempt }: ProjectLimits, { username, groups }: UserInfo): boolean {
  return exempt.users.has(username) || groups.some((group) => exempt.groups.has(group));
}

/** The same of a user of whom no request is at hand: a service account's groups follow from its name. */
export function isExemptUser(limits: ProjectLimits, username: string): boolean {
  const account = serviceAccountOf(username);
  const groups =
    account === undefined ? [] : ["system:serviceaccounts", `system:serviceaccounts:${account.namespace}`];
  return isExempt(limits, { username, groups });
}

export function isTrusted({ trustedAnnotators }: ProjectLimits, { username }: UserInfo): boolean {
  return trustedAnnotators.has(username);
}

/** Whether a rule may ever limit ordinary users; without rules not even their User object is read. */
export function limitsUsers({ rules }: ProjectLimits): boolean {
  return rules.length > 0;
}
