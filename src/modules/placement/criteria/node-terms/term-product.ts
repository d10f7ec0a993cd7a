import { isObject, type Json, type JsonObject } from "../../../../core/json.ts";
import type { WorkBudget } from "../../merge/work-budget.ts";
import { MAX_REQUIREMENTS, MAX_TERMS, MAX_WEIGHT } from "./node-terms.ts";
import { combination, has, type ParsedTerm, type ParsedTerms } from "./parsed-term.ts";
import type { Selector } from "./possible-term.ts";
import { areCompatible, isSatisfiable } from "./possible-term.ts";

/** For a product what a pod may say, and as much again for each of 8 alternatives that lead nowhere. */
const MOST_TRIED = 8 * MAX_WEIGHT;

/** A requirement that is written is copied, spelled again for the note, and sent. */
const WORK_OF_WRITING = 6;

/** What a pod's terms and a policy's come to. */
export type Product =
  | { readonly kind: "same" | "contradiction" | "nowhere" | "append-only" | "too large" | "too much work" }
  | {
      readonly kind: "terms";
      readonly terms: readonly Json[];
      /** The policy's terms that came into it. */
      readonly added: readonly JsonObject[];
    };

/** What a product is made of beside the terms themselves. */
export interface Making {
  readonly known: ParsedTerms;
  readonly selector: Selector;
  readonly budget: WorkBudget;
}

/** The policy's terms for a pod that has none. */
export function alone(wanted: readonly JsonObject[], { known, selector, budget }: Making): Product {
  const terms: JsonObject[] = [];
  let size = 0;
  for (const term of wanted) {
    const read = known.wanted(term, budget);
    if (budget.exceeded) return { kind: "too much work" };
    if (!isSatisfiable(read, selector, budget)) continue;
    if (!budget.spend(WORK_OF_WRITING * read.size)) return { kind: "too much work" };
    terms.push(term);
    size += read.size;
    known.note(read);
  }
  if (terms.length === 0) return { kind: "contradiction" };
  if (terms.length > MAX_TERMS || size > MAX_REQUIREMENTS) return { kind: "too large" };
  return { kind: "terms", terms, added: terms };
}

/** Each term of the pod with each of the policy, as far as there is need. The pod's must not say too much. */
export function productOf(
  own: readonly Json[],
  wanted: readonly JsonObject[],
  { known, selector, budget }: Making,
  appendOnly: boolean,
): Product {
  const theirs = wanted.flatMap((term) => {
    const read = budget.exceeded ? undefined : known.wanted(term, budget);
    return read === undefined || read.requirements.size === 0
      ? []
      : [{ read, possible: isSatisfiable(read, selector, budget) }];
  });
  let tried = 0;
  const used = new Set<ParsedTerm>();
  const terms: Json[] = [];
  const seen = new Seen(budget);
  let [size, said, alive, changed, dropped] = [0, false, false, false, false];
  for (const term of own) {
    const mine = known.own(term, budget);
    const before = terms.length;
    if (!isObject(term) || !isSatisfiable(mine, selector, budget)) {
      terms.push(term);
      continue;
    }
    said = true;
    const met = theirs.filter(({ read }) => !budget.exceeded && has(mine, read, budget));
    if (budget.exceeded) return { kind: "too much work" };
    if (met.length > 0) {
      for (const one of met) used.add(one.read);
      terms.push(term);
      seen.add(mine);
      alive = true;
      continue;
    }
    changed = true;
    for (const { read, possible } of theirs) {
      tried += mine.weight + read.requirements.size;
      if (tried > MOST_TRIED) return { kind: "too large" };
      if (!possible || !areCompatible(mine, read, budget)) {
        if (budget.exceeded) return { kind: "too much work" };
        continue;
      }
      // To put them together, and to write what it comes to.
      if (!budget.spend(WORK_OF_WRITING * (mine.size + read.size))) return { kind: "too much work" };
      const both = combination(mine, read);
      used.add(read);
      alive = true;
      // What several come to is written once.
      if (seen.has(both) && !appendOnly) continue;
      seen.add(both);
      terms.push(both.term);
      known.note(both);
      size += both.size;
      if (terms.length > MAX_TERMS || size > MAX_REQUIREMENTS) return { kind: "too large" };
    }
    if (terms.length !== before + 1) dropped = true;
  }
  if (budget.exceeded) return { kind: "too much work" };
  if (!said) return { kind: "nowhere" };
  if (!alive) return { kind: "contradiction" };
  if (!changed) return { kind: "same" };
  if (appendOnly && dropped) return { kind: "append-only" };
  return { kind: "terms", terms, added: [...used].map(({ term }) => term).filter(isObject) };
}

/** The terms of a product so far, asked whether they have one of the same requirements. */
class Seen {
  readonly #bySize = new Map<number, ParsedTerm[]>();
  readonly #budget: WorkBudget;

  constructor(budget: WorkBudget) {
    this.#budget = budget;
  }

  add(term: ParsedTerm): void {
    const alike = this.#bySize.get(term.requirements.size);
    if (alike === undefined) this.#bySize.set(term.requirements.size, [term]);
    else alike.push(term);
  }

  has(term: ParsedTerm): boolean {
    const alike = this.#bySize.get(term.requirements.size) ?? [];
    return alike.some((other) => has(other, term, this.#budget));
  }
}
