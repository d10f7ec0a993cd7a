import type { Result } from "../../../core/evaluate/decision.ts";
import type { Context } from "../../../core/module/module.ts";
import { mergePolicies } from "../merge/merge-policies.ts";
import type { Site } from "../merge/site.ts";
import { select } from "../select/select.ts";
import { notTargeted } from "../select/target.ts";
import { limitsAtCreation } from "../update/mutability.ts";
import { consumeReapply } from "../update/reapply.ts";
import { decide, type Policies, refuses, unclearFindings } from "./decision.ts";

/** A new object gets what all policies that select it want. */
export function placeCreated(context: Context, site: Site, policies: Policies): Result {
  const { draft, workload, labels } = site;
  const start = draft.mark();
  const selection = select(policies.all, labels, context, (policy) => notTargeted(policy, workload));
  if ("need" in selection) return selection;
  const findings = unclearFindings(selection);
  if (refuses(findings)) return decide(draft, start, findings);
  // A new object is placed anyway; the request to do so must not stay in it.
  consumeReapply(draft);
  const missing = mergePolicies(context, site, limitsAtCreation(workload), selection.wanting, findings);
  return missing ?? decide(draft, start, findings);
}
