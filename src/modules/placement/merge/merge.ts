import type { Draft } from "../../../core/evaluate/draft.ts";
import type { Finding, PolicyRef } from "../../../core/evaluate/finding.ts";
import type { Path } from "../../../core/path.ts";
import type { Criteria, FieldLimits } from "../criteria/criteria.ts";
import { mergeNodeSelector } from "../criteria/node-selector.ts";
import type { KnownTerms } from "../criteria/node-terms/known-term.ts";
import { LISTS, NAMES } from "../criteria/places.ts";
import { mergeRequiredNodeAffinity } from "../criteria/required-node-affinity.ts";
import type { KnownLists } from "../criteria/shape/known-list.ts";
import { mergeList } from "../criteria/shape/list.ts";
import { mergeName } from "../criteria/shape/name.ts";
import { reportBudgetExceeded } from "./report.ts";
import { STEPS_TO_TELL, type WorkBudget } from "./work-budget.ts";

/** What one policy wants of one object, and what follows where it can't have it. */
export interface PlacementRequest {
  readonly ref: PolicyRef;
  readonly criteria: Criteria;
  readonly onConflict: "Skip" | "Refuse";
  readonly failure: "Ignore" | "Fail";
  /**
   * It only gives back what the stored object has: limits do not apply, and what the user sets himself stays without a word. All that
   * there is to give back is merged before anything is taken back and before anything new.
   */
  readonly restoring: boolean;
}

/** Where wishes are merged into. */
export interface Target {
  readonly draft: Draft;
  /** The path of the pod's spec. */
  readonly spec: Path;
  /** A Pod itself, not a template. */
  readonly pod: boolean;
  readonly limits: FieldLimits;
  /** Who set a place in this evaluation. */
  readonly holders: Map<string, PolicyRef>;
  /** What is known of its lists. */
  readonly lists: KnownLists;
  /** What is known of its required terms. */
  readonly terms: KnownTerms;
  /** What may still be done for it. */
  readonly effort: WorkBudget;
}

/**
 * Merges a wish into the object, through the draft: what the pod says stays, the rest is added. What is skipped is told as findings; a
 * `violated` one refuses, and then nothing of that field is written. Where those before it took all the work that is done for one object,
 * nothing is merged.
 */
export function merge(target: Target, wish: PlacementRequest, findings: Finding[]): void {
  const { criteria } = wish;
  if (!target.effort.spend(STEPS_TO_TELL)) {
    reportBudgetExceeded(target, wish, findings);
    return;
  }
  let start = startOf(target, findings);
  if (criteria.nodeSelector.length > 0) {
    mergeNodeSelector(target, wish, findings);
    start = settle(target, findings, start);
  }
  if (criteria.requiredNodeTerms.length > 0) {
    mergeRequiredNodeAffinity(target, wish, findings);
    start = settle(target, findings, start);
  }
  if (!wantsMore(criteria)) return;
  for (const list of LISTS) {
    const wanted = criteria[list.criterion];
    if (wanted.length === 0) continue;
    mergeList(target, wish, list, wanted, findings);
    start = settle(target, findings, start);
  }
  for (const field of NAMES) {
    const wanted = criteria[field];
    if (wanted === undefined) continue;
    mergeName(target, wish, field, wanted, findings);
    start = settle(target, findings, start);
  }
}

/** Whether there is anything but node labels. Field by field, since most policies want nothing else, and every pod pays for the looking. */
function wantsMore(criteria: Criteria): boolean {
  return (
    criteria.tolerations.length > 0 ||
    criteria.preferredNodeTerms.length > 0 ||
    criteria.requiredPodTerms.length > 0 ||
    criteria.preferredPodTerms.length > 0 ||
    criteria.requiredAntiTerms.length > 0 ||
    criteria.preferredAntiTerms.length > 0 ||
    criteria.topologySpreadConstraints.length > 0 ||
    criteria.schedulingGates.length > 0 ||
    criteria.schedulerName !== undefined ||
    criteria.nodeName !== undefined ||
    criteria.priorityClassName !== undefined ||
    criteria.runtimeClassName !== undefined
  );
}

/** How far draft and findings had come before a field. */
interface Start {
  readonly mark: number;
  readonly told: number;
}

function startOf({ draft }: Target, findings: readonly Finding[]): Start {
  return { mark: draft.mark(), told: findings.length };
}

/** Takes a field back of which a part is refused, so that no half of it is seen by those who come after. */
function settle(target: Target, findings: readonly Finding[], { mark, told }: Start): Start {
  for (let i = told; i < findings.length; i++) {
    if (findings[i]?.outcome !== "violated") continue;
    target.draft.undo(mark);
    break;
  }
  return startOf(target, findings);
}
