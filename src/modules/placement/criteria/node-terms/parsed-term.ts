import { isObject, type Json, type JsonObject, listAt, own } from "../../../../core/json.ts";
import type { Requirement } from "../../../../core/kubernetes/selectors/label-selector.ts";
import {
  compileTerm,
  type NodeNameRequirement,
  type NumericRequirement,
} from "../../../../core/kubernetes/selectors/node-selector.ts";
import type { WorkBudget } from "../../merge/work-budget.ts";
import { areTooLarge, LISTS, spelled, type TermsSize, termsSizeOf, weightOf } from "./node-terms.ts";
import { type Selector, selectorIn } from "./possible-term.ts";
import { namesAgree, possible } from "./satisfiable.ts";

type LabelRequirement = Requirement | NumericRequirement;

/** All that a term says of one label. */
interface OfLabel {
  readonly requirements: readonly LabelRequirement[];
  /** The same as they are spelled. */
  readonly texts: readonly string[];
  /** How many values that names. */
  readonly values: number;
}

/** A term with all that is asked of it again and again: its requirements in one spelling, and what it says of each label. */
export interface ParsedTerm {
  readonly term: Json;
  /** Each with the list that it is in. */
  readonly requirements: ReadonlySet<string>;
  /** As they stand in each list. */
  readonly texts: readonly (readonly string[])[];
  /** Terms, requirements and values, all told. */
  readonly weight: number;
  /** How many requirements it has. */
  readonly size: number;
  /** Nothing where no node whatever could match it. */
  readonly meaning:
    | { readonly labels: ReadonlyMap<string, OfLabel>; readonly names: readonly NodeNameRequirement[] }
    | undefined;
}

/** Of policies: their terms never change, and each object is asked about anew. */
const known = new WeakMap<JsonObject, ParsedTerm>();

/** The terms of one object, each read once for all policies; and those of policies, read once for all objects. */
export class ParsedTerms {
  readonly #own = new Map<Json, ParsedTerm>();
  readonly #sizes = new Map<readonly Json[], TermsSize>();
  #selector: { readonly written: Json | undefined; readonly read: Selector } | undefined;

  /** Whether terms can be looked at; asked of one list again and again. */
  sizeOf(terms: readonly Json[]): TermsSize {
    const known = this.#sizes.get(terms) ?? termsSizeOf(terms);
    this.#sizes.set(terms, known);
    return known;
  }

  /** The nodeSelector of the object, read once: while policies are merged it only gains keys, and these can be read. */
  selector(podSpec: Json | undefined): Selector {
    const written = own(podSpec, "nodeSelector");
    if (this.#selector === undefined || this.#selector.written !== written)
      this.#selector = { written, read: selectorIn(written) };
    return this.#selector.read;
  }

  /** A term of the object. Nobody else changes it while policies are merged. */
  own(term: Json, budget: WorkBudget): ParsedTerm {
    const found = this.#own.get(term);
    if (found !== undefined) return found;
    const made = read(term);
    budget.spend(made.weight);
    // What is no object says nothing, and may stand there in many places.
    if (isObject(term)) this.#own.set(term, made);
    return made;
  }

  /** What was written is known already: it is a copy of these. */
  wrote(terms: readonly Json[], copies: readonly Json[]): void {
    for (const [i, term] of terms.entries()) {
      const made = this.#own.get(term);
      const copy = copies[i];
      if (made !== undefined && copy !== undefined) this.#own.set(copy, { ...made, term: copy });
    }
    this.#sizes.set(copies, areTooLarge(copies) ? "too large" : "readable");
  }

  /** A term that two have come to. */
  note(made: ParsedTerm): void {
    this.#own.set(made.term, made);
  }

  /** A term of a policy. Counted each time, or the first who is asked about it would get less than the second. */
  wanted(term: JsonObject, budget: WorkBudget): ParsedTerm {
    let found = known.get(term);
    if (found === undefined) {
      found = read(term);
      known.set(term, found);
    }
    budget.spend(found.weight);
    return found;
  }
}

function read(term: Json): ParsedTerm {
  const texts = LISTS.map((list) => listAt(term, list).map((one) => spelled(list, one)));
  const requirements = new Set(texts.flat());
  const size = texts.reduce((sum, list) => sum + list.length, 0);
  return {
    term,
    requirements,
    texts,
    weight: weightOf(term),
    size,
    meaning: meaningOf(term, texts[0] ?? []),
  };
}

function meaningOf(term: Json, texts: readonly string[]): ParsedTerm["meaning"] {
  const compiled = compileTerm(term, [], []);
  if (compiled.kind !== "usable" || !namesAgree(compiled.names)) return undefined;
  const labels = new Map<string, { requirements: LabelRequirement[]; texts: string[]; values: number }>();
  // Of a usable term each requirement was read, so they stand as they are written.
  for (const [i, requirement] of compiled.labels.entries()) {
    const said = labels.get(requirement.key) ?? { requirements: [], texts: [], values: 0 };
    said.requirements.push(requirement);
    said.texts.push(texts[i] ?? "");
    said.values += countOf(requirement);
    labels.set(requirement.key, said);
  }
  for (const { requirements } of labels.values()) if (!possible(requirements)) return undefined;
  return { labels, names: compiled.names };
}

function both(a: OfLabel, b: OfLabel): OfLabel {
  return {
    requirements: [...a.requirements, ...b.requirements],
    texts: [...a.texts, ...b.texts],
    values: a.values + b.values,
  };
}

function countOf(requirement: LabelRequirement): number {
  if ("bound" in requirement) return 1;
  let count = 0;
  for (const _value of requirement.values) count++;
  return count;
}

/** Both terms at once: the first one's requirements, behind them those of the second that it has not. They must go together. */
export function combination(a: ParsedTerm, b: ParsedTerm): ParsedTerm {
  const term: Record<string, Json | undefined> = { ...(isObject(a.term) ? a.term : {}) };
  const requirements = new Set(a.requirements);
  let { size, weight } = a;
  const texts = LISTS.map((list, i) => {
    const [mine, theirs] = [a.texts[i] ?? [], b.texts[i] ?? []];
    const more = listAt(b.term, list).filter((_, n) => !a.requirements.has(theirs[n] ?? ""));
    if (more.length === 0) return mine;
    term[list] = [...listAt(a.term, list), ...more];
    size += more.length;
    weight += weightOf({ [list]: more }) - 1;
    const added = theirs.filter((text) => !a.requirements.has(text));
    for (const text of added) requirements.add(text);
    return [...mine, ...added];
  });
  return { term, requirements, texts, size, weight, meaning: meaningOfBoth(a, b) };
}

function meaningOfBoth(a: ParsedTerm, b: ParsedTerm): ParsedTerm["meaning"] {
  if (a.meaning === undefined || b.meaning === undefined) return undefined;
  const labels = new Map(a.meaning.labels);
  for (const [key, said] of b.meaning.labels) {
    const before = labels.get(key);
    labels.set(key, before === undefined ? said : both(before, without(said, a.requirements)));
  }
  const fresh = b.meaning.names.filter((_, i) => !a.requirements.has(b.texts[1]?.[i] ?? ""));
  return { labels, names: [...a.meaning.names, ...fresh] };
}

function without(said: OfLabel, texts: ReadonlySet<string>): OfLabel {
  const fresh = said.texts.map((text) => !texts.has(text));
  const requirements = said.requirements.filter((_, i) => fresh[i]);
  return {
    requirements,
    texts: said.texts.filter((_, i) => fresh[i]),
    values: requirements.reduce((sum, one) => sum + countOf(one), 0),
  };
}

/** Whether a term has all requirements of another. */
export function has(term: ParsedTerm, other: ParsedTerm, budget: WorkBudget): boolean {
  let looks = 1;
  let all = true;
  for (const one of other.requirements) {
    looks++;
    all = term.requirements.has(one);
    if (!all) break;
  }
  budget.spend(looks);
  return all;
}
