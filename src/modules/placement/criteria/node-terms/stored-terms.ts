import { isObject, type Json } from "../../../../core/json.ts";
import type { WorkBudget } from "../../merge/work-budget.ts";
import { combination, has, type KnownTerm } from "./known-term.ts";
import { areTooLarge } from "./node-terms.ts";
import { could, together } from "./possible-term.ts";
import type { Making } from "./term-product.ts";

/** Policies keep to 128 terms, but on the way there what does not come to anything may be more. Beyond this it is not worth knowing. */
const MOST = 1024;
const TRIED = 4 * MOST;

/**
 * Whether the stored terms are what comes of the pod's terms and all that policies had added. Then they are put back as they were: in
 * another order policies come to other terms of the same meaning, which would be another template, and roll out.
 *
 * Judged by what terms say, not by how many there are: each must be at least as narrow as one of the other side. Where that is more work
 * than is done for one object it is not so.
 */
export function meansStored(
  stored: readonly Json[],
  own: readonly Json[] | undefined,
  added: readonly (readonly Json[])[],
  { known, selector, budget }: Making,
): boolean {
  if (areTooLarge(stored)) return false;
  const read = (list: readonly Json[]) =>
    list.map((term) => known.own(term, budget)).filter((term) => could(term, selector, budget));
  let terms = own === undefined ? undefined : read(own);
  for (const list of added) {
    const theirs = list.filter(isObject).map((term) => known.own(term, budget));
    // What leads nowhere has to be tried as well.
    if ((terms?.length ?? 1) * theirs.length > TRIED || budget.exceeded) return false;
    const beside = theirs.filter((term) => could(term, selector, budget));
    terms = terms === undefined ? beside : productOf(terms, beside, budget);
    if (terms.length > MOST || budget.exceeded) return false;
  }
  if (terms === undefined) return false;
  const before = read(stored);
  return within(terms, before, budget) && within(before, terms, budget) && !budget.exceeded;
}

function productOf(own: readonly KnownTerm[], theirs: readonly KnownTerm[], budget: WorkBudget): KnownTerm[] {
  const terms: KnownTerm[] = [];
  for (const term of own) {
    for (const one of theirs) {
      if (budget.exceeded || terms.length > MOST) return terms;
      if (together(term, one, budget) && budget.spend(2 * (term.size + one.size)))
        terms.push(combination(term, one));
    }
  }
  return terms;
}

/** Whether each of some terms has all that one of the others has. */
function within(some: readonly KnownTerm[], others: readonly KnownTerm[], budget: WorkBudget): boolean {
  return some.every((one) => others.some((other) => !budget.exceeded && has(one, other, budget)));
}
