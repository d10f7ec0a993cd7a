import type { Origin } from "../decision/draft.ts";
import { canonical, copyOf, isObject, type Json, type JsonObject } from "../json.ts";
import { withoutTerms } from "../kubernetes/selectors/node-terms.ts";
import { atPointer, steps } from "../path.ts";
import { digestOf, listRoom, PROVENANCE, readProvenance, takesRoom } from "./annotation.ts";

export interface BeforeUsher {
  readonly object: JsonObject;
  /** The changes of each policy. */
  readonly origins: readonly Origin[];
}

/** An object without policies' changes, by its provenance annotation, and without the annotation. */
export function beforeUsher(object: JsonObject): BeforeUsher {
  const { origins, was } = readProvenance(object);
  const copy = copyOf(object) as JsonObject;
  const room = listRoom();
  const known = new Map(
    [...was].filter(([place, { now }]) => {
      const value = atPointer(object, place);
      return isOfPolicy(steps(place)) && takesRoom(value, room) && digestOf(value) === now;
    }),
  );
  for (const { set, added } of origins) {
    for (const place of set)
      if (!known.has(place) && isOfPolicy(steps(place))) removeAt(copy, steps(place), () => undefined);
    for (const [list, elements] of Object.entries(added))
      if (!known.has(list) && isOfPolicy(steps(list)))
        removeAt(copy, steps(list), (found) => without(list, found, elements));
  }
  // Of places inside one another the inner one was written first.
  for (const [place, { value }] of [...known].sort(([a], [b]) => a.length - b.length))
    removeAt(copy, steps(place), () => value);
  removeAt(copy, ["metadata", "annotations", PROVENANCE], () => undefined);
  return { object: copy, origins };
}

/** Any client can write the annotation: policies set only fields within the spec, labels and annotations. */
function isOfPolicy([first, second, third]: readonly string[]): boolean {
  if (first === "metadata") return (second === "labels" || second === "annotations") && third !== undefined;
  return second !== undefined;
}

/** The list without one of each of these elements; `undefined` if nothing is left. */
function without(path: string, list: Json | undefined, elements: readonly Json[]): Json | undefined {
  if (!Array.isArray(list)) return list;
  // A policy's terms were combined with each of the author's, and are recorded as the policy has them.
  if (path.endsWith("/nodeSelectorTerms")) return withoutTerms(list, elements);
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
  depth = 0,
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
  removeAt(inner, rest, change, depth + 1);
  if (depth > 0 && Object.keys(inner).length === 0) delete target[first];
}
