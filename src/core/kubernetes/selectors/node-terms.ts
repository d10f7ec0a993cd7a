import { canonical, isObject, type Json, type JsonObject, listAt, own } from "../../json.ts";

/** The two lists of a node selector term. */
export const LISTS = ["matchExpressions", "matchFields"] as const;

const PARTS: ReadonlySet<string> = new Set(["key", "operator", "values"]);

/** One spelling for one meaning of a requirement, with the list that it is in: order and repetition of its values mean nothing. */
export function spelled(list: (typeof LISTS)[number], requirement: Json): string {
  if (!isObject(requirement) || !Object.keys(requirement).every((part) => PARTS.has(part)))
    return `${list} ${canonical(requirement)}`;
  const values = new Set(listAt(requirement, "values").map(canonical));
  const parts = [own(requirement, "key") ?? "", own(requirement, "operator") ?? "", [...values].sort()];
  return `${list} ${canonical(parts)}`;
}

/** The requirements of a term, each in one spelling. */
export function requirementsOf(term: Json): Set<string> {
  return new Set(LISTS.flatMap((list) => listAt(term, list).map((one) => spelled(list, one))));
}

/** A term without some requirements. An empty list is removed. */
function withoutRequirements(term: JsonObject, requirements: ReadonlySet<string>): JsonObject {
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
 * Terms without requirements that were combined with them, where the terms from before are not known; `undefined` if nothing is left. Terms
 * that become equal are one again. If only some terms would be left with nothing, these are the pod's own: without terms of its own, all
 * would be.
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
    const left = isEmptied || gone.size === 0 || !isObject(term) ? term : withoutRequirements(term, gone);
    const text = canonical(left);
    if (!rest.has(text)) rest.set(text, left);
  }
  return isAll ? undefined : [...rest.values()];
}
