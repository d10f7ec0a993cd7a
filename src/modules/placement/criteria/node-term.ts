import {
  at,
  canonical,
  isObject,
  type Json,
  type JsonObject,
  listAt,
  own,
  textOf,
} from "../../../core/json.ts";
import {
  isSatisfiable,
  type LabelRequirement,
  namesAgree,
} from "../../../core/kubernetes/selectors/node-requirements.ts";
import { compileTerm, type NodeNameRequirement } from "../../../core/kubernetes/selectors/node-selector.ts";
import { LISTS, spelled } from "../../../core/kubernetes/selectors/node-terms.ts";
import type { Path } from "../../../core/path.ts";
import { shallow } from "../../../core/provenance/annotation.ts";
import { REQUIRED } from "./check-elements.ts";
import type { TermsSize } from "./work-limit.ts";

/** Below a pod's spec. */
export const REQUIRED_NODE_AFFINITY: Path = ["affinity", "nodeAffinity", REQUIRED];
export const REQUIRED_TERMS: Path = [...REQUIRED_NODE_AFFINITY, "nodeSelectorTerms"];

/** The most requirements of a product: as text they take some 300 KB, well below the 1.5 MB that etcd takes. */
export const MAX_REQUIREMENTS = 4096;

/**
 * The terms, requirements and values of a pod's own terms that usher reads, all told: twice what a product may come to. An object may hold
 * ten times that.
 */
const MAX_VALUES = 2 * MAX_REQUIREMENTS;

/** A node selector term, read: its requirements in one spelling, and its requirements on each label. */
export interface ParsedTerm {
  readonly term: Json;
  /** Each as `spelled` has it. */
  readonly requirements: ReadonlySet<string>;
  /** The same in the order of each list. */
  readonly texts: readonly (readonly string[])[];
  /** Terms, requirements and values, all told. */
  readonly values: number;
  /** The number of its requirements. */
  readonly size: number;
  /** Absent where no node could match it. */
  readonly meaning: TermMeaning | undefined;
}

/** By label; and on the name of the node. */
export interface TermMeaning {
  readonly labels: ReadonlyMap<string, readonly (LabelRequirement & Spelled)[]>;
  readonly names: readonly (NodeNameRequirement & Spelled)[];
}

interface Spelled {
  readonly text: string;
}

export function parseTerm(term: Json): ParsedTerm {
  const texts = LISTS.map((list) => listAt(term, list).map((one) => spelled(list, one)));
  return {
    term,
    requirements: new Set(texts.flat()),
    texts,
    values: valuesOfTerm(term),
    size: texts.reduce((sum, list) => sum + list.length, 0),
    meaning: meaningOf(term, texts),
  };
}

function meaningOf(term: Json, [labelTexts = [], nameTexts = []]: string[][]): TermMeaning | undefined {
  const compiled = compileTerm(term, [], []);
  if (compiled.kind !== "usable" || !namesAgree(compiled.names)) return undefined;
  // Every requirement of a usable term was read, so they are in the order of their texts.
  const spelledLabels = compiled.labels.map((one, i) => ({ ...one, text: labelTexts[i] ?? "" }));
  const labels = Map.groupBy(spelledLabels, ({ key }) => key);
  for (const requirements of labels.values()) if (!isSatisfiable(requirements)) return undefined;
  return { labels, names: compiled.names.map((one, i) => ({ ...one, text: nameTexts[i] ?? "" })) };
}

/** Both terms at once: the requirements of the first, then those of the second that it does not have. They must be compatible. */
export function combination(a: ParsedTerm, b: ParsedTerm): ParsedTerm {
  const term: Record<string, Json | undefined> = { ...(isObject(a.term) ? a.term : {}) };
  const requirements = new Set(a.requirements);
  let { size, values } = a;
  const texts = LISTS.map((list, i) => {
    const [mine, theirs] = [a.texts[i] ?? [], b.texts[i] ?? []];
    const more = listAt(b.term, list).filter((_, n) => !a.requirements.has(theirs[n] ?? ""));
    if (more.length === 0) return mine;
    term[list] = [...listAt(a.term, list), ...more];
    size += more.length;
    values += valuesOfTerm({ [list]: more }) - 1;
    const added = theirs.filter((text) => !a.requirements.has(text));
    for (const text of added) requirements.add(text);
    return [...mine, ...added];
  });
  return { term, requirements, texts, size, values, meaning: meaningOfBoth(a, b) };
}

function meaningOfBoth(a: ParsedTerm, b: ParsedTerm): TermMeaning | undefined {
  if (a.meaning === undefined || b.meaning === undefined) return undefined;
  const isFresh = ({ text }: Spelled) => !a.requirements.has(text);
  const labels = new Map(a.meaning.labels);
  for (const [key, requirements] of b.meaning.labels) {
    const before = labels.get(key);
    labels.set(key, before === undefined ? requirements : [...before, ...requirements.filter(isFresh)]);
  }
  return { labels, names: [...a.meaning.names, ...b.meaning.names.filter(isFresh)] };
}

/** Whether a term has all requirements of another. */
export function hasAll(term: ParsedTerm, other: ParsedTerm): boolean {
  for (const one of other.requirements) if (!term.requirements.has(one)) return false;
  return true;
}

/** Whether any node could match a term beside the nodeSelector. */
export function isMatchable({ meaning }: ParsedTerm, selector: Selector): boolean {
  if (meaning === undefined || selector === undefined) return false;
  const few = meaning.labels.size < selector.size ? meaning.labels : selector;
  for (const key of few.keys()) {
    const value = selector.get(key);
    if (value !== undefined && !admits(meaning, key, value)) return false;
  }
  return true;
}

/** Whether any node with this label could match a term, as far as it is about this label. */
export function admitsLabel({ meaning }: ParsedTerm, key: string, value: string): boolean {
  return meaning === undefined || admits(meaning, key, value);
}

function admits({ labels }: TermMeaning, key: string, value: string): boolean {
  const requirements = labels.get(key);
  if (requirements === undefined) return true;
  return isSatisfiable([{ key, operator: "In", values: new Set([value]) }, ...requirements]);
}

/** Whether any node could match both of two terms, each of which is matchable. Only labels that both name are looked at. */
export function areCompatible(a: ParsedTerm, b: ParsedTerm): boolean {
  if (a.meaning === undefined || b.meaning === undefined) return false;
  const [few, many] =
    a.meaning.labels.size < b.meaning.labels.size
      ? [a.meaning.labels, b.meaning.labels]
      : [b.meaning.labels, a.meaning.labels];
  for (const [key, requirements] of few) {
    const others = many.get(key);
    if (others !== undefined && !isSatisfiable([...requirements, ...others])) return false;
  }
  return namesAgree([...a.meaning.names, ...b.meaning.names]);
}

/** A nodeSelector as terms are judged beside it; `undefined` where it can match no node. A Map is one. */
export type Selector = Pick<ReadonlyMap<string, string>, "size" | "get" | "keys"> | undefined;

/** Reads each value once, to see that all are texts, and copies none: a pod may have a hundred thousand. */
function selectorIn(written: Json | undefined): Selector {
  if (written === undefined || written === null) return new Map();
  if (!isObject(written)) return undefined;
  let size = 0;
  for (const key in written) {
    const value = written[key];
    if (value === undefined || value === null) continue;
    if (typeof value !== "string") return undefined;
    size++;
  }
  return {
    size,
    get: (key) => {
      const value = own(written, key);
      return typeof value === "string" ? value : undefined;
    },
    keys: () => Object.keys(written).values(),
  };
}

/** Why terms can't be read. No API server sends anything as deep as what is unreadable. */
type Unread = "too large" | "unreadable";

/** The required terms of one object and its nodeSelector, each read once for all policies. */
export class ParsedTerms {
  readonly #terms = new Map<Json, ParsedTerm>();
  readonly #sizes = new Map<readonly Json[], TermsSize | Unread>();
  #selector: { readonly written: Json | undefined; readonly read: Selector } | undefined;

  /** The size of a list of terms, or why it can't be read. */
  sizeOf(terms: readonly Json[]): TermsSize | Unread {
    const known = this.#sizes.get(terms) ?? sizeOfTerms(terms);
    this.#sizes.set(terms, known);
    return known;
  }

  /** While policies are merged the nodeSelector only gains keys, and these are texts. */
  selector(podSpec: Json | undefined): Selector {
    const written = own(podSpec, "nodeSelector");
    if (this.#selector === undefined || this.#selector.written !== written)
      this.#selector = { written, read: selectorIn(written) };
    return this.#selector.read;
  }

  of(term: Json): ParsedTerm {
    const known = this.#terms.get(term);
    if (known !== undefined) return known;
    const parsed = parseTerm(term);
    // A term that is not an object says nothing, and may be in many places.
    if (isObject(term)) this.#terms.set(term, parsed);
    return parsed;
  }

  /** Parsed terms were written into the object, which has copies of them now. */
  wrote(terms: readonly ParsedTerm[], copies: readonly Json[]): void {
    for (const [i, parsed] of terms.entries()) {
      const copy = copies[i];
      if (isObject(copy)) this.#terms.set(copy, { ...parsed, term: copy });
    }
  }
}

/** The size of terms that were parsed. */
export function sizeOfParsed(terms: readonly ParsedTerm[]): TermsSize {
  return { terms: terms.length, values: terms.reduce((sum, one) => sum + one.values, 0) };
}

/** Stops at the first term that is too much: an object may hold a hundred thousand. */
export function sizeOfTerms(terms: readonly Json[]): TermsSize | Unread {
  let values = 0;
  for (const term of terms) {
    values += valuesOfTerm(term);
    if (values > MAX_VALUES) return "too large";
  }
  return terms.every(shallow) ? { terms: terms.length, values } : "unreadable";
}

/** The term itself, its requirements and their values. */
export function valuesOfTerm(term: Json): number {
  let values = 1;
  for (const list of LISTS)
    for (const requirement of listAt(term, list)) values += 1 + listAt(requirement, "values").length;
  return values;
}

/** The required terms of a pod's spec; `undefined` if it has no required node affinity. */
export function requiredTermsOf(podSpec: Json | undefined): readonly Json[] | undefined {
  const required = at(podSpec, ...REQUIRED_NODE_AFFINITY);
  return isObject(required) ? listAt(required, "nodeSelectorTerms") : undefined;
}

/** In readable form: `zone in (a, b) and disk=ssd, or metadata.name=node-1`. */
export function describeTerms(terms: readonly JsonObject[]): string {
  const shown = terms
    .slice(0, SHOWN)
    .map((term) => LISTS.flatMap((list) => listAt(term, list).map(described)).join(" and "));
  const more = terms.length > SHOWN ? [`${terms.length - SHOWN} more`] : [];
  return [...shown, ...more].join(", or ");
}

/** More do not help in one line. */
const SHOWN = 3;

function described(requirement: Json): string {
  const key = textOf(own(requirement, "key"));
  const values = listAt(requirement, "values").map(textOf);
  const many = `(${values.slice(0, SHOWN).join(", ")}${values.length > SHOWN ? ", …" : ""})`;
  switch (own(requirement, "operator")) {
    case "In":
      return values.length === 1 ? `${key}=${values[0]}` : `${key} in ${many}`;
    case "NotIn":
      return values.length === 1 ? `${key}!=${values[0]}` : `${key} not in ${many}`;
    case "Exists":
      return `a label ${key}`;
    case "DoesNotExist":
      return `no label ${key}`;
    case "Gt":
      return `${key}>${values[0]}`;
    case "Lt":
      return `${key}<${values[0]}`;
    default:
      return canonical(requirement);
  }
}
