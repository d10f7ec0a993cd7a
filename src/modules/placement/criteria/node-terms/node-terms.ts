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
import { shallow } from "../../../../core/provenance/origin.ts";
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
export function requirementsOf(term: Json): Set<string> {
  const found = new Set<string>();
  for (const list of LISTS) {
    for (const requirement of listAt(term, list)) found.add(spelled(list, requirement));
  }
  return found;
}

export function includesAll(all: ReadonlySet<string>, some: ReadonlySet<string>): boolean {
  for (const one of some) if (!all.has(one)) return false;
  return true;
}

/** A term without some requirements. A list of which nothing remains goes. */
export function without(term: JsonObject, requirements: ReadonlySet<string>): JsonObject {
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
 * Terms without what policies have added to them; nothing where that is all. A term goes back to what it was before it was combined with
 * one of theirs, and those that are equal then are one again. What others, who stay, have added as well stays. Where only some would
 * be left with nothing, these are the pod's own: had it had none, all would be.
 */
export function withoutAdded(
  terms: readonly Json[],
  added: readonly Json[],
  staying: readonly Json[],
): readonly Json[] | undefined {
  const theirs = setsOf(added);
  const others = setsOf(staying);
  const rest = new Map<string, Json>();
  let emptied = 0;
  for (const term of terms) {
    const has = requirementsOf(term);
    const out = unionWithin(has, theirs);
    for (const requirement of unionWithin(has, others)) out.delete(requirement);
    const all = out.size > 0 && out.size === has.size;
    if (all) emptied++;
    const left = all || out.size === 0 || !isObject(term) ? term : without(term, out);
    const text = canonical(left);
    if (!rest.has(text)) rest.set(text, left);
  }
  return emptied > 0 && emptied === terms.length ? undefined : [...rest.values()];
}

function setsOf(terms: readonly Json[]): Set<string>[] {
  return terms.map(requirementsOf).filter((one) => one.size > 0);
}

/** All requirements of those sets that a term has whole. */
function unionWithin(term: ReadonlySet<string>, sets: readonly ReadonlySet<string>[]): Set<string> {
  const union = new Set<string>();
  for (const one of sets) if (includesAll(term, one)) for (const requirement of one) union.add(requirement);
  return union;
}

/** Whether terms have these and none that has none of these: they are what was added, neither more nor less. */
export function cameFrom(terms: readonly Json[], added: readonly Json[]): boolean {
  const all = terms.map(requirementsOf);
  const theirs = added.map(requirementsOf);
  return (
    theirs.every((one) => all.some((term) => includesAll(term, one))) &&
    all.every((term) => theirs.some((one) => includesAll(term, one)))
  );
}

/** How many requirements a term has. */
export function sizeOf(term: Json): number {
  return listAt(term, "matchExpressions").length + listAt(term, "matchFields").length;
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
