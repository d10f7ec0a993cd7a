import { allow, type Result } from "../../../core/evaluate/decision.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import type { Context } from "../../../core/module/module.ts";
import { REQUESTER, requesterOf } from "../decision/count.ts";
import { judgeCreation } from "../decision/judge.ts";
import { wrongRequester } from "../decision/responses.ts";
import { isExempt, isExemptUser, isTrusted } from "../policy/exempt.ts";
import type { Limits } from "../policy/policy.ts";

/**
 * Judges a new Namespace as its requester's, and refuses a changed requester. The stamp is compared with the user that asks, because a
 * namespace may have escaped mutation.
 */
export function judgeNamespace(context: Context, limits: Limits): Result {
  const { request, object } = context;
  if (isExempt(limits, request.userInfo)) return allow();
  const written = requesterOf(object.object) ?? "";
  if (request.operation === "UPDATE") {
    const stored = requesterOf(request.oldObject) ?? "";
    if (written === stored || isTrusted(limits, request.userInfo)) return allow();
    return wrongRequester(limits, request, `${REQUESTER} can't be changed from "${stored}" to "${written}"`);
  }
  if (request.operation !== "CREATE" || request.subResource !== "") return allow();
  const { username, groups } = request.userInfo;
  if (written === username) return judgeCreation(context, limits, { username, groups });
  if (written === "" || !isTrusted(limits, request.userInfo))
    return wrongRequester(limits, request, `${REQUESTER} must be "${username}", got "${written}"`);
  if (isExemptUser(limits, written)) return allow();
  return judgeCreation(
    context,
    limits,
    { username: written, groups: undefined },
    unknownGroups(limits, written),
  );
}

/** The groups of the annotator are not those of the user that it names, and the API server knows no others. */
function unknownGroups(limits: Limits, username: string): Finding[] {
  if (!limits.rules.some(({ groups }) => groups !== undefined)) return [];
  const message = `groups of user ${username} are not known: rules with groups do not match`;
  return [{ policy: limits.ref, rule: "requester", outcome: "skipped", message, warn: 40 }];
}
