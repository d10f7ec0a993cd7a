import { isObject, type Json, type JsonObject } from "../../core/json.ts";
import { compileNodeSelector } from "../../core/kubernetes/node-selector.ts";
import { combined, includesAll, requirementsOf, sizeOf, weightOf, without } from "./node-terms.ts";
import { type SelectorPairs, satisfiable } from "./satisfiable.ts";

/**
 * As many terms as a policy may have: the scheduler tries them one by one for each node, and each policy multiplies them. Requirements:
 * 64 terms of 64 each, the bounds of a policy again; as text that is some 300 KB, well below the 1.5 MB that etcd takes.
 */
export const MAX_TERMS = 64;
export const MAX_REQUIREMENTS = 4096;

/**
 * What usher looks at of a pod's own terms, and how much of it may be put together: terms, requirements and values, all told. It is twice
 * what a product may come to, and for a product as much again for each of 8 alternatives that lead nowhere; an object may hold ten times
 * that, and each policy would be tried with it.
 */
const MOST_SAID = 2 * MAX_REQUIREMENTS;
const MOST_TRIED = 8 * MOST_SAID;

/** Whether terms say more than usher looks at. */
export function sayTooMuch(terms: readonly Json[]): boolean {
  let said = 0;
  for (const term of terms) {
    said += weightOf(term);
    if (said > MOST_SAID) return true;
  }
  return false;
}

/** What a pod's terms and a policy's come to. */
export type Product =
  | { readonly kind: "same" | "contradiction" | "nowhere" | "append-only" | "too large" }
  | {
      readonly kind: "terms";
      readonly terms: readonly Json[];
      /** The policy's terms that came into it, without what the pod says in each of its own. */
      readonly added: readonly JsonObject[];
    };

/** The policy's terms for a pod that has none. */
export function alone(wanted: readonly JsonObject[], selector: SelectorPairs): Product {
  const terms = wanted.filter((term) => could(term, selector));
  if (terms.length === 0) return { kind: "contradiction" };
  const size = terms.reduce((sum, term) => sum + sizeOf(term), 0);
  if (terms.length > MAX_TERMS || size > MAX_REQUIREMENTS) return { kind: "too large" };
  return { kind: "terms", terms, added: terms };
}

/** Whether any node whatever could meet a term beside the nodeSelector. */
export function could(term: Json, selector: SelectorPairs): boolean {
  const [compiled] = compileNodeSelector({ nodeSelectorTerms: [term] }, []).terms;
  return compiled !== undefined && satisfiable(compiled, selector);
}

/** Each term of the pod with each of the policy, as far as there is need. The pod's must not say too much. */
export function productOf(
  own: readonly Json[],
  wanted: readonly JsonObject[],
  selector: SelectorPairs,
  appendOnly: boolean,
): Product {
  const theirs = wanted.map((term) => ({ term, requirements: requirementsOf(term) }));
  let tried = 0;
  const used = new Set<JsonObject>();
  const terms: Json[] = [];
  const seen = new Set<string>();
  const said: ReadonlySet<string>[] = [];
  let [size, alive, changed, dropped] = [0, false, false, false];
  for (const term of own) {
    const has = requirementsOf(term);
    const before = terms.length;
    if (!isObject(term) || !could(term, selector)) {
      terms.push(term);
      continue;
    }
    said.push(has);
    const met = theirs.filter(({ requirements }) => requirements.size > 0 && includesAll(has, requirements));
    if (met.length > 0) {
      for (const one of met) used.add(one.term);
      terms.push(term);
      seen.add([...has].sort().join("\n"));
      alive = true;
      continue;
    }
    changed = true;
    for (const { term: further, requirements } of theirs) {
      tried += weightOf(term) + requirements.size;
      if (tried > MOST_TRIED) return { kind: "too large" };
      const both = requirements.size === 0 ? undefined : combined(term, further);
      if (both === undefined || !could(both, selector)) continue;
      const text = [...requirementsOf(both)].sort().join("\n");
      used.add(further);
      alive = true;
      // What several come to is written once.
      if (seen.has(text) && !appendOnly) continue;
      seen.add(text);
      terms.push(both);
      size += sizeOf(both);
      if (terms.length > MAX_TERMS || size > MAX_REQUIREMENTS) return { kind: "too large" };
    }
    if (terms.length !== before + 1) dropped = true;
  }
  if (said.length === 0) return { kind: "nowhere" };
  if (!alive) return { kind: "contradiction" };
  if (!changed) return { kind: "same" };
  if (appendOnly && dropped) return { kind: "append-only" };
  const added = [...used].map((term) => without(term, common(said))).filter((term) => sizeOf(term) > 0);
  return { kind: "terms", terms, added };
}

/** What each of the pod's terms says: that the policy says it as well adds nothing, and taking the policy out must leave it. */
function common(said: readonly ReadonlySet<string>[]): ReadonlySet<string> {
  const [first, ...rest] = said;
  return new Set([...(first ?? [])].filter((one) => rest.every((other) => other.has(one))));
}
