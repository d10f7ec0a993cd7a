import { canonical, copyOf, isObject, type Json, type JsonObject } from "../json.ts";
import { steps } from "../path.ts";
import { type Origin, PROVENANCE, provenanceOf } from "./origin.ts";

export interface BeforeUsher {
  readonly object: JsonObject;
  /** What each policy had put there. */
  readonly origins: readonly Origin[];
}

/** An object without what policies put into it, by its provenance annotation, and without the annotation. */
export function beforeUsher(object: JsonObject): BeforeUsher {
  const origins = provenanceOf(object);
  const copy = copyOf(object) as JsonObject;
  for (const { set, added } of origins) {
    for (const place of set) removeAt(copy, steps(place), () => undefined);
    for (const [list, elements] of Object.entries(added))
      removeAt(copy, steps(list), (found) => without(found, elements));
  }
  removeAt(copy, ["metadata", "annotations", PROVENANCE], () => undefined);
  return { object: copy, origins };
}

/** The list without one of each of these elements; `undefined` where nothing is left. */
function without(list: Json | undefined, elements: readonly Json[]): Json | undefined {
  if (!Array.isArray(list)) return list;
  const gone = new Map<string, number>();
  for (const one of elements) gone.set(canonical(one), (gone.get(canonical(one)) ?? 0) + 1);
  const left = list.filter((one: Json) => {
    const text = canonical(one);
    const more = gone.get(text) ?? 0;
    if (more > 0) gone.set(text, more - 1);
    return more === 0;
  });
  return left.length === 0 ? undefined : left;
}

/** Replaces a value, and removes the objects that are empty without it, except for the top level. */
function removeAt(
  object: JsonObject,
  path: readonly string[],
  change: (found: Json | undefined) => Json | undefined,
): void {
  const [first = "", ...rest] = path;
  const target = object as Record<string, Json | undefined>;
  if (!Object.hasOwn(target, first)) return;
  if (rest.length === 0) {
    const left = change(target[first]);
    if (left === undefined) delete target[first];
    else target[first] = left;
    return;
  }
  const inner = target[first];
  if (!isObject(inner)) return;
  removeAt(inner, rest, change);
  if (Object.keys(inner).length === 0) delete target[first];
}
