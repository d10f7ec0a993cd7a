import type { PolicyRef } from "../../../core/evaluate/finding.ts";
import { at, canonical, type Json, type JsonObject } from "../../../core/json.ts";
import { type Path, pointer, steps } from "../../../core/path.ts";
import { type Origin, spelled } from "../../../core/provenance/origin.ts";
import { CRITERIA, criterionAt } from "../criteria/criteria.ts";
import { type Criteria, type Limits, wantedOf } from "../criteria/criterion.ts";

/** The part of an injection that may be removed from this object: none of a gated pod, which can only gain. */
export function removable(origin: Origin, limits: Limits, spec: Path): Origin {
  const free = (place: string) => {
    const criterion = criterionAt(place, spec);
    return (
      criterion !== undefined && limits.appendOnly !== true && limits.immutable[criterion.name] === undefined
    );
  };
  return {
    ...origin,
    set: origin.set.filter(free),
    added: Object.fromEntries(Object.entries(origin.added).filter(([list]) => free(list))),
  };
}

/**
 * The part of an injection that its policy no longer wants. What it still wants stays where it is: removed and added at the end of a list
 * it would be a change, and roll out.
 */
export function outdated(
  origin: Origin,
  { ref, criteria }: { readonly ref: PolicyRef; readonly criteria: Criteria },
  old: JsonObject,
  spec: Path,
): Origin {
  const { uid, generation } = origin;
  // The very policy that wrote it wants the same; what was skipped then is no sign that it has changed.
  if (uid !== undefined && uid === ref.uid && generation !== undefined && generation === ref.generation)
    return { ...origin, set: [], added: {} };
  const added: Record<string, readonly Json[]> = {};
  for (const [list, elements] of Object.entries(origin.added)) {
    const gone = unwanted(list, elements, criteria, spec);
    if (gone.length > 0) added[list] = gone;
  }
  const set = origin.set.filter((place) => !stillSet(place, criteria, old, spec));
  return { ...origin, set, added };
}

function unwanted(list: string, elements: readonly Json[], criteria: Criteria, spec: Path): readonly Json[] {
  const criterion = CRITERIA.find(
    (one) => one.list !== undefined && list === pointer([...spec, ...one.list]),
  );
  if (criterion === undefined) return elements;
  const value = wantedOf(criteria, criterion);
  const wanted = new Set((Array.isArray(value) ? value : []).map(canonical));
  const gone = elements.filter((element) => !wanted.has(spelled(element)));
  if (criterion.recorded !== "combined") return gone;
  // Combined terms are alternatives: with one more or one less all of them mean something else.
  return gone.length > 0 || wanted.size !== elements.length ? elements : [];
}

function stillSet(place: string, criteria: Criteria, old: JsonObject, spec: Path): boolean {
  const criterion = criterionAt(place, spec);
  const wanted = criterion === undefined ? undefined : wantedOf(criteria, criterion);
  if (wanted === undefined) return false;
  const path = steps(place);
  return criterion?.stillSets?.(wanted, path, at(old, ...path)) ?? false;
}

/** The combined terms alone of an injection. */
export function combinedTerms(origin: Origin, spec: Path): Origin {
  const lists = new Set(
    CRITERIA.flatMap(({ recorded, list }) =>
      recorded === "combined" && list !== undefined ? [pointer([...spec, ...list])] : [],
    ),
  );
  const added = Object.entries(origin.added).filter(([list, terms]) => lists.has(list) && terms.length > 0);
  return { ...origin, set: [], added: Object.fromEntries(added) };
}
