import type { Fact } from "../../../core/decision/need.ts";
import type { UserInfo } from "../../../core/decision/request.ts";
import { type Json, own } from "../../../core/json.ts";
import { serviceAccountOf } from "../../../core/kubernetes/principals.ts";
import type { Access, TraceEntry } from "../../../core/module/module.ts";
import type { LimitRule, ProjectLimits } from "./policy.ts";

export const USERS = "users.user.openshift.io";

export const USER_LABELS: Access = {
  group: "user.openshift.io",
  resource: "users",
  verbs: ["get"],
  why: "read the labels of the requesting user",
};

/** The subject of the limit. */
export interface Requester {
  readonly username: string;
  /** `undefined`: unknown, because another user creates the project on its behalf. */
  readonly groups: readonly string[] | undefined;
}

type Limit =
  | { readonly unlimited: true }
  /** `rule`: its path in the spec, such as `limits[2]`. */
  | { readonly max: number; readonly rule: string }
  /** The User object must be read first: live, as upstream does. */
  | { readonly needsUser: true }
  | { readonly userMissing: true };

const UNLIMITED: Limit = { unlimited: true };

/** The User object, or that there is none; `undefined`: not read yet. */
export type UserFact = Exclude<Fact, { readonly failed: string }> | undefined;

/**
 * The limit that applies: that of service accounts, of system users, or of the first rule that matches. The User is
 * only read if its labels, or its existence, can matter: a rule that groups or names alone decide needs none.
 */
export function limitOf(limits: ProjectLimits, requester: Requester, user: UserFact): Limit {
  const field = fieldFor(requester.username, limits);
  if (field !== undefined) return fixed(limits[field], field);
  for (const [i, rule] of limits.rules.entries()) {
    if (!matchesIdentity(rule, requester)) continue;
    if (needsLabels(rule)) {
      const labels = labelsOf(user, limits);
      if (!("found" in labels)) return labels;
      if (!matchesLabels(rule, labels.found)) continue;
    }
    return fixed(rule.maxProjects, `limits[${i}]`);
  }
  return UNLIMITED;
}

/** The field that limits all users of a kind; `undefined` for users, who are limited by rules. */
function fieldFor(username: string, limits: ProjectLimits) {
  if (serviceAccountOf(username) !== undefined) return "maxProjectsForServiceAccounts";
  return isUserName(username, limits) ? undefined : "maxProjectsForSystemUsers";
}

/** Every limit that `limitOf` evaluates, in order, and why it applies to the requester or not. */
export function* traceLimits(
  limits: ProjectLimits,
  requester: Requester,
  user: UserFact,
): Iterable<TraceEntry> {
  const { ref: policy } = limits;
  const { username } = requester;
  const field = fieldFor(username, limits);
  if (field !== undefined) {
    yield { policy, rule: field, applies: "applies", why: `user ${username}: ${allowed(limits[field])}` };
    return;
  }
  let first: string | undefined;
  for (const [i, one] of limits.rules.entries()) {
    const rule = `limits[${i}]`;
    const why = first === undefined ? whyNot(one, requester, user, limits) : `${first} applies first`;
    if (why === undefined) first = rule;
    yield {
      policy,
      rule,
      applies: why === undefined ? "applies" : "not",
      why: why ?? allowed(one.maxProjects),
    };
  }
}

function allowed(max: number | undefined): string {
  return max === undefined ? "not limited" : `at most ${max} project(s)`;
}

function whyNot(
  rule: LimitRule,
  requester: Requester,
  user: UserFact,
  limits: ProjectLimits,
): string | undefined {
  const { username, groups } = requester;
  if (rule.users?.has(username) === false) return `user ${username} is not one of its users`;
  if (!matchesIdentity(rule, requester))
    return groups === undefined
      ? `groups of user ${username} are not known`
      : "none of its groups is the user's";
  if (!needsLabels(rule)) return undefined;
  const labels = labelsOf(user, limits);
  if (!("found" in labels)) return `the labels of user ${username} are not known`;
  for (const [key, value] of rule.selector)
    if (own(labels.found, key) !== value) return `the User has no label ${key}=${value}`;
  return undefined;
}

function fixed(max: number | undefined, rule: string): Limit {
  return max === undefined ? UNLIMITED : { max, rule };
}

/**
 * Whether a User object could have this name. All others are system users. Names that begin with `b64:` are encoded by
 * OpenShift 4; the plugin of 3.11 treats them as system users.
 */
export function isUserName(name: string, { extensions }: Pick<ProjectLimits, "extensions">): boolean {
  if (name === "" || name === "." || name === ".." || name === "~") return false;
  return !/[/%]/.test(name) && (!name.includes(":") || (extensions && name.startsWith("b64:")));
}

function matchesIdentity({ users, groups }: LimitRule, requester: Requester): boolean {
  if (users !== undefined && !users.has(requester.username)) return false;
  return groups === undefined || (requester.groups ?? []).some((group) => groups.has(group));
}

/** A rule for every user needs the User too: upstream refuses users without one as soon as there is a rule. */
function needsLabels({ selector, users, groups }: LimitRule): boolean {
  return selector.size > 0 || (users === undefined && groups === undefined);
}

function labelsOf(
  user: UserFact,
  { extensions }: ProjectLimits,
): { readonly found: Json | undefined } | Limit {
  if (user === undefined) return { needsUser: true };
  if ("found" in user) {
    const metadata = own(user.found, "metadata");
    return { found: own(metadata, "labels") };
  }
  return extensions && user.absent === "NotServed" ? { found: undefined } : { userMissing: true };
}

function matchesLabels({ selector }: LimitRule, labels: Json | undefined): boolean {
  for (const [key, value] of selector) if (own(labels, key) !== value) return false;
  return true;
}

/** Whether the user is never limited, and may set and change requesters. */
export function isExempt({ exempt }: ProjectLimits, { username, groups }: UserInfo): boolean {
  return exempt.users.has(username) || groups.some((group) => exempt.groups.has(group));
}

/** The same for a user without a request: a service account's groups follow from its name. */
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
