import { limitsUsers } from "../policy/limit.ts";
import type { ProjectLimits } from "../policy/policy.ts";
import { REQUESTER } from "../projects.ts";

/**
 * Match conditions: users that can't be limited pass fail-closed hooks also while no usher answers, and an update that
 * does not change the requester costs no call. Each is equivalent to the decision, in CEL.
 */

const USER = "request.userInfo.username";

const DNS_LABEL = "[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?";
const SUBDOMAIN = "[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
/** Together they accept the same names as `serviceAccountOf`: the second has the length of the name. */
export const SERVICE_ACCOUNT_PATTERNS = [
  `^system:serviceaccount:${DNS_LABEL}:${SUBDOMAIN}$`,
  "^system:serviceaccount:[^:]*:[^:]{1,253}$",
] as const;
const SERVICE_ACCOUNT = SERVICE_ACCOUNT_PATTERNS.map((pattern) => `${USER}.matches('${pattern}')`).join(
  " && ",
);

/** The names that `isUserName` refuses. */
function systemUser({ extensions }: ProjectLimits): string {
  const encoded = extensions ? ` && !${USER}.startsWith('b64:')` : "";
  return `(${USER} in ['', '.', '..', '~'] || ${USER}.matches('[/%]') || (${USER}.contains(':')${encoded}))`;
}

/** Exempt users, in CEL. */
function exempt({ exempt: { users, groups } }: ProjectLimits): string {
  const parts: string[] = [];
  if (users.size > 0) parts.push(`${USER} in ${list(users)}`);
  if (groups.size > 0)
    parts.push(
      `(has(request.userInfo.groups) && request.userInfo.groups.exists(group, group in ${list(groups)}))`,
    );
  return parts.length === 0 ? "false" : `(${parts.join(" || ")})`;
}

/** Users that a limit can be for, exempt ones included. */
function limited(limits: ProjectLimits): string {
  const accounts = limits.maxProjectsForServiceAccounts !== undefined;
  const system = limits.maxProjectsForSystemUsers !== undefined;
  return `(${SERVICE_ACCOUNT} ? ${accounts} : ${systemUser(limits)} ? ${system} : ${limitsUsers(limits)})`;
}

/**
 * A namespace that a trusted annotator creates for another user may be limited as that user's, regardless of the
 * annotator's own limit.
 */
function limitedHere(limits: ProjectLimits): string {
  const { trustedAnnotators } = limits;
  if (trustedAnnotators.size === 0) return limited(limits);
  const forOthers = `request.operation == 'CREATE' && !(${requesterOf("object")} in ['', ${USER}])`;
  return `(${USER} in ${list(trustedAnnotators)} && ${forOthers} || ${limited(limits)})`;
}

export function canBeLimited(limits: ProjectLimits): string {
  return `!${exempt(limits)} && ${limited(limits)}`;
}

/** The same for Namespaces, where trusted annotators act for others. */
export function canBeLimitedHere(limits: ProjectLimits): string {
  return `!${exempt(limits)} && ${limitedHere(limits)}`;
}

/** Those whose stamp is checked although they can't be limited. */
export function onlyStamped(limits: ProjectLimits): string {
  return `!${exempt(limits)} && !${limitedHere(limits)}`;
}

/** A creation, or a change of the requester. Deleting and finalizing a namespace is neither. */
export const REQUESTER_CHANGES = `request.operation == 'CREATE' || ${requesterOf("object")} != ${requesterOf("oldObject")}`;

function requesterOf(object: string): string {
  const annotations = `${object}.metadata.annotations`;
  return `(has(${annotations}) && '${REQUESTER}' in ${annotations} ? ${annotations}['${REQUESTER}'] : '')`;
}

/** JSON's escapes are also CEL's. */
function list(texts: ReadonlySet<string>): string {
  return `[${[...texts]
    .sort()
    .map((text) => JSON.stringify(text))
    .join(", ")}]`;
}
