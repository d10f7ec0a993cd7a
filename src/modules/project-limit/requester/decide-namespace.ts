import { allow, type Result } from "../../../core/decision/decision.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import type { Context } from "../../../core/module/module.ts";
import { decideCreation } from "../decision/decide-creation.ts";
import { wrongRequester } from "../decision/responses.ts";
import { isExempt, isExemptUser, isTrusted } from "../policy/limit.ts";
import type { ProjectLimits } from "../policy/policy.ts";
import { REQUESTER, requesterOf } from "../projects.ts";

const WHO_MAY = "only exempt users and trusted annotators may choose the requester";

/**
 * Evaluates a new Namespace as its requester's, and refuses a changed requester. The annotation is compared with the
 * sender, because a namespace may have bypassed mutation.
 */
export function decideNamespace(context: Context, limits: ProjectLimits): Result {
  const { request, draft } = context;
  const passes = (why: string): Result => {
    context.trace?.({ policy: limits.ref, applies: "not", why });
    return allow();
  };
  const refuses = (what: string): Result => {
    context.trace?.({ policy: limits.ref, applies: "refuses", why: what });
    return wrongRequester(limits, request, what);
  };
  if (isExempt(limits, request.userInfo)) return passes(`user ${request.userInfo.username} is exempt`);
  const written = requesterOf(draft.object) ?? "";
  if (request.operation === "UPDATE") {
    const stored = requesterOf(request.oldObject) ?? "";
    if (written === stored) return passes("the requester stays as it is");
    if (isTrusted(limits, request.userInfo)) return passes("a trusted annotator may change the requester");
    return refuses(`${REQUESTER} can't be changed from "${stored}" to "${written}"; ${WHO_MAY}`);
  }
  if (request.operation !== "CREATE" || request.subResource !== "")
    return passes(`${request.operation} of a namespace is not limited`);
  const { username, groups } = request.userInfo;
  if (written === username) return decideCreation(context, limits, { username, groups });
  if (written === "")
    return refuses(`${REQUESTER} is missing: usher did not answer when it was to be set; try again`);
  if (!isTrusted(limits, request.userInfo))
    return refuses(`${REQUESTER} must be "${username}", got "${written}"; ${WHO_MAY}`);
  if (isExemptUser(limits, written)) return passes(`user ${written} is exempt`);
  return decideCreation(
    context,
    limits,
    { username: written, groups: undefined },
    unknownGroups(limits, written),
  );
}

/** The groups of the annotator are not those of the named user, and the API server knows no others. */
function unknownGroups(limits: ProjectLimits, username: string): Finding[] {
  if (!limits.rules.some(({ groups }) => groups !== undefined)) return [];
  const message = `groups of user ${username} are not known: rules with groups do not match`;
  return [{ policy: limits.ref, rule: "requester", outcome: "skipped", message, warn: 40 }];
}

const PATH = ["metadata", "annotations", REQUESTER];
const WARN = 40;

/** Sets the requester of a new namespace, overriding its creator's value, and restores one that an update removes. */
export function stampRequester({ request, draft }: Context, limits: ProjectLimits): Result {
  const { userInfo, operation } = request;
  const written = requesterOf(draft.object) ?? "";
  const chooses = isExempt(limits, userInfo) || isTrusted(limits, userInfo);
  const about = { policy: limits.ref, rule: "requester", path: PATH, recordedByModule: true as const };
  if (operation === "CREATE") {
    if (written === userInfo.username || userInfo.username === "" || (chooses && written !== ""))
      return allow();
    const message = `requester is ${userInfo.username}`;
    draft.set(PATH, userInfo.username, { ...about, outcome: "applied", message });
  } else if (operation === "UPDATE") {
    const stored = requesterOf(request.oldObject) ?? "";
    if (chooses || written !== "" || stored === "") return allow();
    const message = `${REQUESTER} can't be removed: kept ${stored}`;
    const kept: Finding = { ...about, outcome: "applied", code: "USHER-Q04", message, warn: WARN };
    draft.set(PATH, stored, kept);
  }
  return allow();
}
