import type { Finding } from "../../../core/evaluate/finding.ts";
import { policyName } from "../../../core/evaluate/finding.ts";
import { listAt } from "../../../core/json.ts";
import type { PlacementRequest, Target } from "../merge/merge.ts";
import {
  applied,
  closed,
  conflict,
  holderOf,
  leftOut,
  type Place,
  reportTooMuchWork,
  same,
  unwritable,
} from "../merge/report.ts";
import { storedValue } from "../merge/stored-value.ts";
import { STEPS_TO_TELL } from "../merge/work-budget.ts";
import { allows, could, selectorOf } from "./node-terms/known-term.ts";
import { REQUIRED_NODE_TERMS } from "./places.ts";

/**
 * nodeSelector: a key that the pod has not is added; one that it has stays as it is, whoever set it. All keys of a nodeSelector
 * must match, so adding can only narrow where the pod may run. Applying it twice changes nothing further.
 *
 * A key with which no term of the required node affinity could match any node is a contradiction too, though no key says otherwise.
 */
export function mergeNodeSelector(target: Target, wish: PlacementRequest, findings: Finding[]): void {
  const { draft, spec, holders } = target;
  for (const [key, value] of wish.criteria.nodeSelector) {
    const path = [...spec, "nodeSelector", key];
    const place: Place = { rule: "nodeSelector", path };
    const present = draft.get(...path);
    if (!target.effort.spend(STEPS_TO_TELL)) {
      reportTooMuchWork(wish, place, `nodeSelector ${key}=${value}`, findings);
      return;
    }
    if (present === value) {
      same(wish, place, `nodeSelector ${key}=${value}`, findings);
    } else if (present !== undefined && present !== null) {
      const sides = `${holderOf(target, `nodeSelector/${key}`)} says ${String(present)}, policy ${policyName(wish.ref)} says ${value}`;
      conflict(wish, place, "USHER-P01", `nodeSelector ${key}: ${sides}`, findings);
    } else if (closed(target, wish, "nodeSelector", place, findings)) {
      return;
    } else if (contradicts(target, key, value)) {
      tellContradiction(target, wish, place, `${key}=${value}`, findings);
    } else {
      const was = storedValue(draft, path) === value;
      if (draft.set(path, value, applied(wish, place, `nodeSelector ${key}=${value}`, was)))
        holders.set(`nodeSelector/${key}`, wish.ref);
      else unwritable(wish, place, "nodeSelector is no object here", findings);
    }
  }
}

/** Whether a further key leaves no term that any node could match, where there was one before. */
function contradicts({ draft, spec, terms: known, effort }: Target, key: string, value: string): boolean {
  // Most pods have no affinity at all.
  if (draft.get(...spec, "affinity") === undefined) return false;
  const podSpec = draft.get(...spec);
  const list = listAt(podSpec, ...REQUIRED_NODE_TERMS);
  // That is told where the policy's own terms are merged; of its labels none is held back for it.
  if (list.length === 0 || known.sayTooMuch(list)) return false;
  const terms = list.map((term) => known.own(term, effort));
  effort.spend(list.length);
  // A label that no term speaks of changes nothing for any.
  if (!terms.some(({ meaning }) => meaning?.labels.has(key))) return false;
  const selector = selectorOf(podSpec);
  effort.spend(selector?.size ?? 0);
  let lost = false;
  for (const term of terms) {
    const stays = allows(term, key, value, effort);
    // Of those that go it is enough to know of one that it could be met.
    if ((!stays && lost) || !could(term, selector, effort)) continue;
    if (stays) return false;
    lost = true;
  }
  return lost;
}

function tellContradiction(
  target: Target,
  wish: PlacementRequest,
  place: Place,
  pair: string,
  findings: Finding[],
): void {
  const said = `nodeSelector ${pair} of policy ${policyName(wish.ref)}: no node could meet it together with the required node affinity, which ${holderOf(target, "requiredNodeAffinity")} has set`;
  // Put back it would make a pod that can't run of one that can, so that is told as well.
  if (wish.restoring) leftOut(wish, place, "USHER-P11", `${said}; it is not put back`, findings);
  else conflict(wish, place, "USHER-P11", said, findings);
}
