import type { Finding } from "../../../core/evaluate/finding.ts";
import type { MergeContext, PlacementRequest } from "./context.ts";
import { Report, reportBudgetExceeded } from "./report.ts";
import { STEPS_TO_REPORT } from "./work-budget.ts";

/**
 * Merges a placement request into the object, criterion by criterion: what the pod has is kept, the rest is added. What is skipped is
 * reported; a criterion with a `violated` finding is undone whole, so that no half of it is seen by the policies that follow. Nothing is
 * merged once the work budget is used up.
 */
export function merge(target: MergeContext, request: PlacementRequest, findings: Finding[]): void {
  if (!target.budget.spend(STEPS_TO_REPORT)) {
    reportBudgetExceeded(target, request, findings);
    return;
  }
  const { draft } = target;
  for (const { criterion, value } of request.criteria) {
    const [mark, reported] = [draft.mark(), findings.length];
    criterion.merge(target, value, new Report(target, request, criterion, findings));
    if (isRefused(findings, reported)) draft.undo(mark);
  }
}

function isRefused(findings: readonly Finding[], from: number): boolean {
  for (let i = from; i < findings.length; i++) if (findings[i]?.outcome === "violated") return true;
  return false;
}
