import type { Fact } from "../../../core/evaluate/need.ts";
import { type Json, own } from "../../../core/json.ts";
import { serviceAccountOf } from "../../../core/kubernetes/principals.ts";
import type { Access } from "../../../core/module/module.ts";
import type { LimitRule, Limits } from "../policy/policy.ts";

export const USERS = "users.user.openshift.io";

export const USER_LABELS: Access = {
  group: "user.openshift.io",
  resource: "users",
  verbs: ["get"],
  why: "read the labels of the requesting user",
};

/** Whom the limit is for. */
export interface Requester {
  readonly username: string;
  /** `undefined`: not known, because another user creates the project in its name. */
  readonly groups: readonly string[] | undefined;
}

export type Limit =
  | { readonly unlimited: true }
  /** `rule`: where in the spec it is said, such as `limits[2]`. */
  | { readonly max: number; readonly rule: string }
  /** The User object must be read first: live, as upstream does. */
  | { readonly needsUser: true }
  | { readonly userMissing: true };

const UNLIMITED: Limit = { unlimited: true };

/** The User object as it was read, or that there is none; `undefined`: not read yet. */
export type UserFact = Exclude<Fact, { readonly failed: string }> | undefined;

/**
 * Which limit applies: that of service accounts, of system users, or of the first rule that matches. The User is only asked for where
 * its labels, or whether it exists, can matter: a rule that is decided by groups or names alone needs none.
 */
export function limitOf(limits: Limits, requester: Requester, user: UserFact): Limit {
  const { username } = requester;
  if (serviceAccountOf(username) !== undefined)
    return fixed(limits.maxProjectsForServiceAccounts, "maxProjectsForServiceAccounts");
  if (!isUserName(username, limits))
    return fixed(limits.maxProjectsForSystemUsers, "maxProjectsForSystemUsers");
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

function fixed(max: number | undefined, rule: string): Limit {
  return max === undefined ? UNLIMITED : { max, rule };
}

/**
 * Whether a User object could have this name. All others are system users. Names that begin with `b64:` are those of users whose name
 * OpenShift 4 had to encode; the plugin of 3.11 takes them for system users.
 */
export function isUserName(name: string, { extensions }: Pick<Limits, "extensions">): boolean {
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

function labelsOf(user: UserFact, { extensions }: Limits): { readonly found: Json | undefined } | Limit {
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
