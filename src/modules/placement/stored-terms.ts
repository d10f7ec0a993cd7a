import { isObject, type Json } from "../../core/json.ts";
import { combined, includesAll, requirementsOf } from "./node-terms.ts";
import type { SelectorPairs } from "./satisfiable.ts";
import { could, sayTooMuch } from "./term-product.ts";

/** Policies keep to 64 terms, but on the way there what does not come to anything may be more. Beyond this it is not worth knowing. */
const MOST = 1024;
const TRIED = 4 * MOST;

/**
 * Whether the stored terms are what comes of the pod's terms and all that policies had added. Then they are put back as they were: in
 * another order policies come to other terms of the same meaning, which would be another template, and roll out.
 *
 * Judged by what terms say, not by how many there are: each must be at least as narrow as one of the other side.
 */
export function meansStored(
  stored: readonly Json[],
  own: readonly Json[] | undefined,
  added: readonly (readonly Json[])[],
  selector: SelectorPairs,
): boolean {
  let terms = (own ?? [{}]).filter((term) => own === undefined || could(term, selector));
  if (sayTooMuch(stored)) return false;
  for (const theirs of added) {
    // What leads nowhere has to be tried as well.
    if (terms.length * theirs.length > TRIED) return false;
    terms = terms
      .flatMap((term) => theirs.map((one) => both(term, one)))
      .filter((term) => could(term, selector));
    if (terms.length > MOST) return false;
  }
  const [product, before] = [terms, stored.filter((term) => could(term, selector))].map((list) =>
    list.map(requirementsOf),
  );
  return product !== undefined && before !== undefined && within(product, before) && within(before, product);
}

function both(term: Json, further: Json): Json {
  return isObject(term) && isObject(further) ? combined(term, further) : null;
}

/** Whether each of some terms has all that one of the others has. */
function within(some: readonly ReadonlySet<string>[], others: readonly ReadonlySet<string>[]): boolean {
  return some.every((one) => others.some((other) => includesAll(one, other)));
}
