import { allow, type Result } from "../../../core/evaluate/decision.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import type { Context } from "../../../core/module/module.ts";
import { REQUESTER, requesterOf } from "../decision/count.ts";
import { isExempt, isTrusted } from "../policy/exempt.ts";
import type { ProjectLimits } from "../policy/policy.ts";

const PATH = ["metadata", "annotations", REQUESTER];
const WARN = 40;

/** Sets the requester of a new namespace, whatever its creator wrote, and restores one that an update removes. */
export function stampRequester({ request, object }: Context, limits: ProjectLimits): Result {
  const { userInfo, operation } = request;
  const written = requesterOf(object.object) ?? "";
  const chooses = isExempt(limits, userInfo) || isTrusted(limits, userInfo);
  const about = { policy: limits.ref, rule: "requester", path: PATH, recordedByModule: true as const };
  if (operation === "CREATE") {
    if (written === userInfo.username || userInfo.username === "" || (chooses && written !== ""))
      return allow();
    const message = `requester is ${userInfo.username}`;
    object.set(PATH, userInfo.username, { ...about, outcome: "applied", message });
  } else if (operation === "UPDATE") {
    const stored = requesterOf(request.oldObject) ?? "";
    if (chooses || written !== "" || stored === "") return allow();
    const message = `${REQUESTER} can't be removed: kept ${stored}`;
    const kept: Finding = { ...about, outcome: "applied", code: "USHER-Q04", message, warn: WARN };
    object.set(PATH, stored, kept);
  }
  return allow();
}
