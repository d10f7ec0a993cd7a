import type { Draft } from "../../../core/evaluate/draft.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import { policyName } from "../../../core/evaluate/finding.ts";
import { at, equal, isObject, type Json, type JsonObject, listAt } from "../../../core/json.ts";
import { pointer } from "../../../core/path.ts";
import { shallow } from "../../../core/provenance/origin.ts";
import type { PlacementRequest, Target } from "../merge/merge.ts";
import {
  applied,
  closed,
  conflict,
  failed,
  holderOf,
  leftOut,
  type Place,
  reportTooMuchWork,
  unwritable,
} from "../merge/report.ts";
import { storedOrder, storedOrigins, storedValue } from "../merge/stored-value.ts";
import { WorkBudget } from "../merge/work-budget.ts";
import { type Selector, selectorOf } from "./node-terms/known-term.ts";
import { cameFrom, describeTerms, MAX_REQUIREMENTS, MAX_TERMS, weightOf } from "./node-terms/node-terms.ts";
import { meansStored } from "./node-terms/stored-terms.ts";
import { alone, type Product, productOf } from "./node-terms/term-product.ts";
import { REQUIRED_NODE_AFFINITY, REQUIRED_NODE_TERMS } from "./places.ts";

const RULE = "affinity.nodeAffinity.required";
const HOLDER = "requiredNodeAffinity";

/**
 * Required node affinity: terms are alternatives, so that both sides hold each term of the pod is combined with each of the policy, the
 * pod's requirements first. A term that has all requirements of one of the policy's stays as it is: then applying it twice changes
 * nothing further. Terms that match no node by themselves stay as they are, too: nothing can narrow them.
 *
 * A combination that no node whatever could match, nodeSelector included, is left out while another remains. If none does, or a pod
 * at a gate would have to gain or lose a term, the policy's terms are skipped together.
 */
export function mergeRequiredNodeAffinity(target: Target, wish: PlacementRequest, findings: Finding[]): void {
  const wanted = wish.criteria.requiredNodeTerms;
  if (wanted.length === 0) return;
  const { draft, spec } = target;
  const place: Place = { rule: RULE, path: [...spec, ...REQUIRED_NODE_TERMS] };
  const podSpec = at(draft.object, ...spec);
  const present = at(podSpec, ...REQUIRED_NODE_AFFINITY);
  const list = at(present, "nodeSelectorTerms") ?? [];
  const absent = present === undefined || present === null;
  if (!termsAt(list) || !(absent || isObject(present))) {
    unwritable(wish, place, `${RULE} is no list of terms here`, findings);
    return;
  }
  if (target.terms.sayTooMuch(list)) {
    tellSkipped(target, wish, place, "too large", findings);
    return;
  }
  const selector = selectorOf(podSpec);
  const making = { known: target.terms, selector, effort: target.effort };
  if (wish.restoring && restored(target, wish, place, absent ? undefined : list, selector)) return;
  const appendOnly = target.limits.appendOnly === true && !wish.restoring;
  const product = absent ? alone(wanted, making) : productOf(list, wanted, making, appendOnly);
  if (product.kind === "same") {
    tellSame(wish, place, wanted, findings);
    reinstate(target, wish, place, list, selector);
  } else if (product.kind !== "terms") {
    tellSkipped(target, wish, place, product.kind, findings);
  } else if (!closed(target, wish, "requiredNodeAffinity", place, findings)) {
    write(target, wish, place, product, selector, findings);
  }
}

function write(
  { draft, holders, terms: known, effort }: Target,
  wish: PlacementRequest,
  place: Place,
  product: Extract<Product, { kind: "terms" }>,
  selector: Selector,
  findings: Finding[],
): void {
  const { old } = draft;
  const stored =
    old === undefined
      ? undefined
      : known.stored(() => storedOrder(draft, place.path, at(old, ...place.path)));
  // Other terms of the same meaning would be another template, and roll out.
  const again = termsAt(stored) && meansStored(stored, product.terms, [], { known, selector, effort });
  const terms = again ? stored : product.terms;
  const taken = storedValue(draft, place.path);
  if (termsAt(taken)) for (const term of [...taken, ...product.added]) effort.spend(4 * weightOf(term));
  const was = termsAt(taken) && cameFrom(taken, product.added);
  const finding = applied(wish, place, `required node affinity ${describeTerms(product.added)}`, was);
  if (!draft.set(place.path, terms, finding, { elements: product.added, all: true })) {
    unwritable(wish, place, `${RULE} can't be written here`, findings);
    return;
  }
  known.wrote(terms, listAt(draft.object, ...place.path));
  if (product.terms === product.added) holders.set(HOLDER, wish.ref);
}

/** Objects whose stored terms are not what is to be put back, each with how much had been taken out when that was seen. */
const differing = new WeakMap<Draft, number>();

/** Puts the stored terms back if they are those of the pod with all that was added; then that is all for every policy. */
function restored(
  { draft, terms: known }: Target,
  wish: PlacementRequest,
  place: Place,
  own: readonly Json[] | undefined,
  selector: Selector,
): boolean {
  const stored = draft.old === undefined ? undefined : at(draft.old, ...place.path);
  if (!termsAt(stored)) return false;
  if (own !== undefined && equal(stored, own)) return true;
  const wanted = wish.criteria.requiredNodeTerms;
  // What is added to the pod's terms is what the product has anyway: where it is another, it is so for every policy.
  if (differing.get(draft) === draft.disowned.length) return false;
  // Asked once for each object, and not at the cost of what is then to be put back.
  const effort = new WorkBudget();
  if (!meansStored(stored, own, addedTo(draft.old, place), { known, selector, effort })) {
    differing.set(draft, draft.disowned.length);
    return false;
  }
  const finding = applied(wish, place, `required node affinity ${describeTerms(wanted)}`, false);
  return draft.set(place.path, stored, finding, { elements: wanted, all: true });
}

/** Where a part was taken back that turns out to be wanted, the terms as they are stored mean the same and change nothing. */
function reinstate(
  { draft, terms: known, effort }: Target,
  wish: PlacementRequest,
  place: Place,
  now: readonly Json[],
  selector: Selector,
): void {
  if (draft.old === undefined || storedValue(draft, place.path) === undefined) return;
  const stored = storedOrder(draft, place.path, at(draft.old, ...place.path));
  if (!termsAt(stored) || equal(stored, now) || !meansStored(stored, now, [], { known, selector, effort }))
    return;
  const wanted = wish.criteria.requiredNodeTerms;
  const finding = applied(wish, place, `required node affinity ${describeTerms(wanted)}`, true);
  draft.set(place.path, stored, finding, { elements: wanted, all: true });
}

/** What each policy has added to the stored object's terms. */
function addedTo(old: JsonObject | undefined, { path }: Place): (readonly Json[])[] {
  const list = pointer(path);
  return storedOrigins(old).flatMap(({ added }) => {
    const terms = added[list];
    return terms === undefined ? [] : [terms];
  });
}

/** Far deeper than any term is what no API server has sent. */
function termsAt(value: Json | undefined): value is readonly Json[] {
  return Array.isArray(value) && value.every(shallow);
}

function tellSame(
  wish: PlacementRequest,
  { rule, path }: Place,
  wanted: readonly JsonObject[],
  findings: Finding[],
): void {
  if (wish.restoring) return;
  const message = `required node affinity ${describeTerms(wanted)} is there already`;
  findings.push({ policy: wish.ref, rule, path, outcome: "same", elements: wanted, message });
}

function tellSkipped(
  target: Target,
  wish: PlacementRequest,
  place: Place,
  why: Exclude<Product["kind"], "same" | "terms">,
  findings: Finding[],
): void {
  const subject = `required node affinity of policy ${policyName(wish.ref)}`;
  const holder = holderOf(target, HOLDER);
  if (why === "too large") {
    const message = `${subject} is left out: with what ${holder} requires it would come to more than ${MAX_TERMS} terms or ${MAX_REQUIREMENTS} requirements; ask for less in one of them`;
    failed(wish, place, "USHER-P12", message, findings);
  } else if (why === "too much work") {
    reportTooMuchWork(wish, place, "required node affinity", findings);
  } else if (why === "append-only") {
    const message = `${subject} is left out: a pod at a scheduling gate takes further requirements, but neither more nor fewer terms`;
    leftOut(wish, place, "USHER-P13", message, findings);
  } else if (why === "nowhere") {
    const message = `${subject} is left out: what ${holder} requires matches no node whatever`;
    leftOut(wish, place, "USHER-P11", message, findings);
  } else {
    const said = `${subject}: no node could meet it together with what ${holder} requires`;
    // Put back it would make a pod that can't run of one that can, so that is told as well.
    if (wish.restoring) leftOut(wish, place, "USHER-P11", `${said}; it is not put back`, findings);
    else conflict(wish, place, "USHER-P11", said, findings);
  }
}
