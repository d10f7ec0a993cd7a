import type { Finding } from "../../core/finding.ts";
import { policyName } from "../../core/finding.ts";
import { type Json, listAt, own } from "../../core/json.ts";
import { compilePodPlacement } from "../../core/kubernetes/node-selector.ts";
import type { Target, Wish } from "./merge.ts";
import { REQUIRED_NODE_TERMS } from "./places.ts";
import { satisfiable } from "./satisfiable.ts";
import { takenFrom } from "./taken.ts";
import { applied, closed, conflict, holderOf, leftOut, type Place, same, unwritable } from "./tell.ts";
import { sayTooMuch } from "./term-product.ts";

/**
 * nodeSelector: a key that the pod has not is added; one that it has stays as it is, whoever set it. All keys of a nodeSelector
 * must match, so adding can only narrow where the pod may run. Applying it twice changes nothing further.
 *
 * A key with which no term of the required node affinity could match any node is a contradiction too, though no key says otherwise.
 */
export function mergeNodeSelector(target: Target, wish: Wish, findings: Finding[]): void {
  const { draft, spec, holders } = target;
  for (const [key, value] of wish.criteria.nodeSelector) {
    const path = [...spec, "nodeSelector", key];
    const place: Place = { rule: "nodeSelector", path };
    const present = draft.get(...path);
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
      const was = takenFrom(draft, path) === value;
      if (draft.set(path, value, applied(wish, place, `nodeSelector ${key}=${value}`, was)))
        holders.set(`nodeSelector/${key}`, wish.ref);
      else unwritable(wish, place, "nodeSelector is no object here", findings);
    }
  }
}

/** Whether a further key leaves no term that any node could match, where there was one before. */
function contradicts({ draft, spec }: Target, key: string, value: string): boolean {
  // Most pods have no affinity at all.
  if (draft.get(...spec, "affinity") === undefined) return false;
  const podSpec = draft.get(...spec);
  // That is told where the policy's own terms are merged; of its labels none is held back for it.
  if (sayTooMuch(listAt(podSpec, ...REQUIRED_NODE_TERMS))) return false;
  // A label that no term speaks of changes nothing for any.
  if (!listAt(podSpec, ...REQUIRED_NODE_TERMS).some((term) => speaksOf(term, key))) return false;
  const { nodeSelector, terms } = compilePodPlacement(podSpec);
  if (terms === undefined || nodeSelector === undefined) return false;
  const tighter = [...nodeSelector, [key, value] as const];
  return (
    !terms.some((term) => satisfiable(term, tighter)) && terms.some((term) => satisfiable(term, nodeSelector))
  );
}

function speaksOf(term: Json, key: string): boolean {
  return listAt(term, "matchExpressions").some((requirement) => own(requirement, "key") === key);
}

function tellContradiction(
  target: Target,
  wish: Wish,
  place: Place,
  pair: string,
  findings: Finding[],
): void {
  const said = `nodeSelector ${pair} of policy ${policyName(wish.ref)}: no node could meet it together with the required node affinity, which ${holderOf(target, "requiredNodeAffinity")} has set`;
  // Put back it would make a pod that can't run of one that can, so that is told as well.
  if (wish.restoring) leftOut(wish, place, "USHER-P11", `${said}; it is not put back`, findings);
  else conflict(wish, place, "USHER-P11", said, findings);
}
