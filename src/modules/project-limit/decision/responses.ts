import type { Count } from "../../../core/decision/decision.ts";
import { allow, type Decision, deny } from "../../../core/decision/decision.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import { type AdmissionRequest, resourceName } from "../../../core/decision/request.ts";
import { nameIn } from "../../../core/decision/status.ts";
import type { ProjectLimits } from "../policy/policy.ts";
import type { Usage } from "../projects.ts";
import type { LimitSubject } from "../subject.ts";

/** A creation that a maximum applies to: all that is left is to count. */
export interface Creation {
  readonly limits: ProjectLimits;
  /** Whose projects are counted. */
  readonly subject: LimitSubject;
  /** The user of the project. */
  readonly username: string;
  /** The name of the new project. */
  readonly project: string;
  readonly max: number;
  /** `limits[2]`, `maxProjectsForSystemUsers` */
  readonly rule: string;
}

/** Names in a message: more are found with `usher project-limit usage`. */
const MOST_NAMES = 10;
/** Above conflicts, below omissions. */
const WARN = 50;

/** Admitted. The last free place is worth a warning: the next creation is refused. */
export function admitted(creation: Creation, usage: Usage): readonly Finding[] {
  const { limits, rule, username, max } = creation;
  if (usage.count + 1 !== max || !limits.extensions) return [];
  const message = `this is the last of ${max} project(s) that user ${username} may have`;
  return [{ policy: limits.ref, rule, outcome: "authorized", message, warn: WARN }];
}

/** The first sentence is upstream's to the letter. */
export function overLimit(
  request: AdmissionRequest,
  creation: Creation,
  usage: Usage,
  counts: readonly Count[] = [],
): Decision {
  const { limits, rule, username, max } = creation;
  const sentence = `user ${username} cannot create more than ${max} project(s).`;
  const message = `${forbidden(request)} ${sentence} Has ${describeUsage(usage)}`;
  return denied(limits, 403, "Forbidden", { rule, code: "USHER-Q01", message }, { counts });
}

/** Free places are unknown now: the client repeats the request. */
export function ledgerBusy(
  request: AdmissionRequest,
  { limits, rule, username }: Creation,
  why: string,
  counts: readonly Count[],
): Decision {
  const name = nameIn(request.name, request.object);
  const message = `${resourceName(request.resource)} "${name}": the projects of user ${username} can't be counted now: ${why}; try again`;
  const about = { rule, code: "USHER-Q05", message };
  return denied(limits, 429, "TooManyRequests", about, { retryAfterSeconds: 1, counts });
}

function describeUsage({ count, names }: Usage): string {
  if (count === 0) return "0";
  const shown = names.slice(0, MOST_NAMES);
  return `${count}: ${[...shown, ...(names.length > shown.length ? ["…"] : [])].join(", ")}`;
}

/** `namespaces "shop" is forbidden:`, in Kubernetes' wording. */
function forbidden(request: AdmissionRequest): string {
  return `${resourceName(request.resource)} "${nameIn(request.name, request.object)}" is forbidden:`;
}

export function userMissing(limits: ProjectLimits, username: string): Decision {
  const message = `users.user.openshift.io "${username}" not found: limits of projects depend on the labels of the User object, and user ${username} has none; ask an administrator to create it, or to exempt the user`;
  return denied(
    limits,
    404,
    "NotFound",
    { rule: "limits", code: "USHER-Q02", message },
    { details: { name: username, group: "user.openshift.io", kind: "users" } },
  );
}

export function lookupFailed(
  limits: ProjectLimits,
  username: string,
  failure: { readonly why: string; readonly status: number | undefined; readonly reason: string | undefined },
): Decision {
  const { status, why } = failure;
  const known = status !== undefined && status >= 400;
  const code = known ? status : 503;
  const reason = (known ? failure.reason : undefined) ?? (code === 403 ? "Forbidden" : "ServiceUnavailable");
  const message = `the limit of user ${username} is not known: the User object could not be read: ${why}; try again`;
  return denied(limits, code, reason, { rule: "limits", code: "USHER-Q03", message });
}

/** An invalid spec defines no limit: fail-closed refuses, fail-open passes with a warning. */
export function invalidLimits(limits: ProjectLimits): Decision {
  const message = `the limit is not known: ProjectRequestLimit ${limits.ref.name} is not valid: ${limits.invalid}`;
  const about = { rule: "limits", code: "USHER-Q03", message };
  if (limits.failurePolicy === "Fail") return denied(limits, 500, "InternalError", about);
  return allow([{ ...about, policy: limits.ref, outcome: "failed", warn: WARN }]);
}

export function wrongRequester(limits: ProjectLimits, request: AdmissionRequest, what: string): Decision {
  const message = `${forbidden(request)} ${what}`;
  return denied(limits, 403, "Forbidden", { rule: "requester", code: "USHER-Q04", message });
}

function denied(
  { ref }: ProjectLimits,
  code: number,
  reason: string,
  about: Required<Pick<Finding, "rule" | "code" | "message">>,
  more: Pick<Parameters<typeof deny>[0], "details" | "retryAfterSeconds"> & {
    readonly counts?: readonly Count[];
  } = {},
): Decision {
  const { counts, ...rest } = more;
  return deny({ code, reason, ...rest }, [{ ...about, policy: ref, outcome: "violated" }], counts);
}
