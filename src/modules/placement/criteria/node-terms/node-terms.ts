import {
  at,
  canonical,
  isObject,
  type Json,
  type JsonObject,
  listAt,
  own,
  textOf,
} from "../../../../core/json.ts";
import { MAX_REQUIRED_TERMS } from "../../../../core/kubernetes/schemas/bounds.ts";
import type { Path } from "../../../../core/path.ts";
import { shallow } from "../../../../core/provenance/annotation.ts";
import { REQUIRED } from "../shape/affinity-lists.ts";

/** Below a pod's spec. */
export const REQUIRED_NODE_AFFINITY: Path = ["affinity", "nodeAffinity", REQUIRED];
export const REQUIRED_TERMS: Path = [...REQUIRED_NODE_AFFINITY, "nodeSelectorTerms"];

/** The required terms of a pod's spec; `undefined` where it has no required node affinity. */
export function requiredTermsOf(podSpec: Json | undefined): readonly Json[] | undefined {
  const required = at(podSpec, ...REQUIRED_NODE_AFFINITY);
  return isObject(required) ? listAt(required, "nodeSelectorTerms") : undefined;
}

/** The two lists of a node selector term. */
export const LISTS = ["matchExpressions", "matchFields"] as const;
/**
 * As many terms as a policy may have: the scheduler tries them one by one for each node, and each policy multiplies them. Requirements:
 * as text 4,096 take some 300 KB, well below the 1.5 MB that etcd takes.
 */
export const MAX_TERMS = MAX_REQUIRED_TERMS;
export const MAX_REQUIREMENTS = 4096;

/**
 * What usher looks at of a pod's own terms: terms, requirements and values, all told. It is twice what a product may come to; an object
 * may hold ten times that, and each policy would be tried with it.
 */
export const MAX_WEIGHT = 2 * MAX_REQUIREMENTS;

const PARTS: ReadonlySet<string> = new Set(["key", "operator", "values"]);

/**
 * One spelling for one meaning of a requirement, with the list that it is in: the order of its values, and one that is there twice, mean
 * nothing.
 */
export function spelled(list: (typeof LISTS)[number], requirement: Json): string {
  return `${list} ${meaningOf(requirement)}`;
}

function meaningOf(requirement: Json): string {
  if (!isObject(requirement) || !Object.keys(requirement).every((part) => PARTS.has(part)))
    return canonical(requirement);
  const values = new Set(listAt(requirement, "values").map(canonical));
  return canonical([own(requirement, "key") ?? "", own(requirement, "operator") ?? "", [...values].sort()]);
}

/** All that a term requires, each requirement in one spelling with the list that it is in. */
function requirementsOf(term: Json): Set<string> {
  const found = new Set<string>();
  for (const list of LISTS) {
    for (const requirement of listAt(term, list)) found.add(spelled(list, requirement));
  }
  return found;
}

/** A term without some requirements. A list of which nothing remains goes. */
function without(term: JsonObject, requirements: ReadonlySet<string>): JsonObject {
  const rest: Record<string, Json | undefined> = { ...term };
  for (const list of LISTS) {
    const before = listAt(term, list);
    const kept = before.filter((one) => !requirements.has(spelled(list, one)));
    if (kept.length === before.length) continue;
    if (kept.length === 0) delete rest[list];
    else rest[list] = kept;
  }
  return rest;
}

/**
 * Terms without the requirements of policies, where the terms from before are not known; nothing where that is all. Terms that are equal
 * then are one again. Where only some would be left with nothing, these are the pod's own: had it had none, all would be.
 */
export function withoutTerms(terms: readonly Json[], injected: readonly Json[]): readonly Json[] | undefined {
  const sets = injected.map(requirementsOf).filter((one) => one.size > 0);
  const rest = new Map<string, Json>();
  let isAll = terms.length > 0;
  for (const term of terms) {
    const has = requirementsOf(term);
    const gone = new Set(sets.filter((one) => one.isSubsetOf(has)).flatMap((one) => [...one]));
    const isEmptied = gone.size > 0 && gone.size === has.size;
    isAll &&= isEmptied;
    const left = isEmptied || gone.size === 0 || !isObject(term) ? term : without(term, gone);
    const text = canonical(left);
    if (!rest.has(text)) rest.set(text, left);
  }
  return isAll ? undefined : [...rest.values()];
}

/** One text for alternatives that mean the same: in any order, and without those that are narrower than another. */
export function termsMeaning(terms: readonly Json[]): string {
  const all = [
    ...new Map(terms.map((term) => [canonical([...requirementsOf(term)].sort()), requirementsOf(term)])),
  ];
  const widest = all.filter(([, one]) => !all.some(([, other]) => other !== one && other.isSubsetOf(one)));
  return canonical(widest.map(([text]) => text).sort());
}

/** How much a term says: itself, its requirements and their values. */
export function weightOf(term: Json): number {
  let weight = 1;
  for (const list of LISTS)
    for (const requirement of listAt(term, list)) weight += 1 + listAt(requirement, "values").length;
  return weight;
}

/** Whether terms say more than usher looks at. */
export function areTooLarge(terms: readonly Json[]): boolean {
  let said = 0;
  for (const term of terms) {
    said += weightOf(term);
    if (said > MAX_WEIGHT) return true;
  }
  return false;
}

/** Whether terms can be looked at. No API server sends anything as deep as what is unreadable. */
export type TermsSize = "readable" | "too large" | "unreadable";

export function termsSizeOf(terms: readonly Json[]): TermsSize {
  if (areTooLarge(terms)) return "too large";
  return terms.every(shallow) ? "readable" : "unreadable";
}

/** For people: `zone in (a, b) and disk=ssd, or metadata.name=node-1`. */
export function describeTerms(terms: readonly JsonObject[]): string {
  const shown = terms.slice(0, SHOWN).map(describeTerm);
  const more = terms.length > SHOWN ? [`${terms.length - SHOWN} more`] : [];
  return [...shown, ...more].join(", or ");
}

/** Of policies, whose terms never change: dropping it changes no result. */
const descriptions = new WeakMap<JsonObject, string>();

function describeTerm(term: JsonObject): string {
  const known = descriptions.get(term);
  if (known !== undefined) return known;
  const requirements = LISTS.flatMap((list) => listAt(term, list));
  const text = requirements.map(described).join(" and ");
  descriptions.set(term, text);
  return text;
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
