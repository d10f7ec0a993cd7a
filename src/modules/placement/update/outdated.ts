import type { PolicyRef } from "../../../core/evaluate/finding.ts";
import { at, canonical, type Json, type JsonObject } from "../../../core/json.ts";
import { type Path, pointer, steps } from "../../../core/path.ts";
import type { Origin } from "../../../core/provenance/origin.ts";
import type { Criteria, FieldLimits } from "../criteria/criteria.ts";
import { fieldAt } from "../criteria/field-at.ts";
import { LISTS, NAMES, REQUIRED_NODE_TERMS } from "../criteria/places.ts";

/** The part of an origin that may be taken out of this object again: none of a gated pod, which can only gain. */
export function takeable(origin: Origin, limits: FieldLimits, spec: Path): Origin {
  const free = (place: string) => {
    const field = fieldAt(place, spec);
    return field !== undefined && limits.appendOnly !== true && limits[field] === undefined;
  };
  return {
    ...origin,
    set: origin.set.filter(free),
    added: Object.fromEntries(Object.entries(origin.added).filter(([list]) => free(list))),
  };
}

/**
 * The part of an origin that its policy does not want any more. What it still wants stays where it is: taken out and put back at
 * the end of a list it would look like a change, and roll out.
 */
export function outdated(
  origin: Origin,
  { ref, criteria }: { readonly ref: PolicyRef; readonly criteria: Criteria },
  old: JsonObject,
  spec: Path,
): Origin {
  const { uid, generation } = origin;
  // The very policy that wrote it wants the same; what of that was left out then is no sign that it has changed.
  if (uid !== undefined && uid === ref.uid && generation !== undefined && generation === ref.generation)
    return { ...origin, set: [], added: {} };
  const added: Record<string, readonly Json[]> = {};
  for (const [list, elements] of Object.entries(origin.added)) {
    const wanted = new Set(wantedIn(list, criteria, spec).map(canonical));
    const gone = elements.filter((element) => !wanted.has(canonical(element)));
    if (fieldAt(list, spec) !== "requiredNodeAffinity") {
      if (gone.length > 0) added[list] = gone;
    }
    // Terms are alternatives: with one more or one less all of them mean something else.
    else if (gone.length > 0 || wanted.size !== elements.length) added[list] = elements;
  }
  const set = origin.set.filter((place) => !stillSet(place, criteria, old, spec));
  return { ...origin, set, added };
}

/** The required terms alone of an origin. */
export function requiredTerms(origin: Origin, spec: Path): Origin {
  const list = pointer([...spec, ...REQUIRED_NODE_TERMS]);
  const terms = origin.added[list] ?? [];
  return { ...origin, set: [], added: terms.length === 0 ? {} : { [list]: terms } };
}

function stillSet(place: string, criteria: Criteria, old: JsonObject, spec: Path): boolean {
  const path = steps(place);
  const value = at(old, ...path);
  const field = fieldAt(place, spec);
  if (field === "nodeSelector") {
    const key = path.at(-1);
    return criteria.nodeSelector.some((pair) => pair[0] === key && pair[1] === value);
  }
  const name = NAMES.find((one) => one === field);
  return name !== undefined && criteria[name] === value;
}

function wantedIn(list: string, criteria: Criteria, spec: Path): readonly JsonObject[] {
  if (list === pointer([...spec, ...REQUIRED_NODE_TERMS])) return criteria.requiredNodeTerms;
  const known = LISTS.find(({ path }) => list === pointer([...spec, ...path]));
  return known === undefined ? [] : criteria[known.criterion];
}
