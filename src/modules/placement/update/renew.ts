import type { NeedMore } from "../../../core/evaluate/decision.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import { stringAt } from "../../../core/json.ts";
import { mergePolicies } from "../merge/merge-policies.ts";
import { storedOrigins } from "../merge/stored-value.ts";
import type { Selection } from "../select/select.ts";
import { type Update, withdraw, withoutConsumed } from "./inject.ts";

/**
 * A reapply removes all that policies had added and adds all that they want now. Half of that would be a loss, so it is all or nothing:
 * where it can't be done, what was restored stays, and `reported` with it.
 */
export function renew(
  update: Update,
  { wanting, unclear }: Selection,
  reported: readonly Finding[],
): NeedMore | undefined {
  const { context, site, old, limits, findings } = update;
  const before = site.draft.mark();
  if (unclear.length > 0) {
    findings.push(...reported, notRenewed("can't determine which policies select this object"));
    return undefined;
  }
  withdraw(update, storedOrigins(old));
  const version = stringAt(old, "metadata", "resourceVersion") ?? "";
  if (version !== "") site.draft.renew(version);
  const missing = mergePolicies(context, site, limits, withoutConsumed(wanting, site), findings);
  if (missing === undefined && findings.some(({ outcome }) => outcome === "failed")) {
    site.draft.undo(before);
    findings.push(...reported, notRenewed("part of what policies want can't be determined or written"));
  }
  return missing;
}

export function notRenewed(why: string): Finding {
  return {
    rule: "reapply",
    outcome: "skipped",
    code: "USHER-P22",
    message: `reapply skipped: ${why}`,
    warn: 75,
  };
}
