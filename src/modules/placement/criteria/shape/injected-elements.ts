import type { Draft } from "../../../../core/evaluate/draft.ts";
import { at, canonical, isObject, type Json } from "../../../../core/json.ts";
import { type Path, pointer } from "../../../../core/path.ts";
import {
  hasSameNote,
  listRoom,
  type Origin,
  provenanceOf,
  readableElements,
  spelled,
} from "../../../../core/provenance/origin.ts";

/** The elements that policies have added to a list. */
export function addedBy(origins: readonly Origin[], list: Path): readonly Json[] {
  const place = pointer(list);
  return origins.flatMap(({ added }) => added[place] ?? []);
}

/** The elements of a list that no policy has added, neither by the stored object's note nor by its own, which an earlier call wrote. */
export function ownElements({ object, old }: Draft, list: Path): readonly Json[] {
  const elements = readableElements(at(object, ...list), listRoom()) ?? [];
  const origins = [...provenanceOf(old), ...(hasSameNote(object, old) ? [] : provenanceOf(object))];
  const added = new Set(addedBy(origins, list).map(spelled));
  return added.size === 0 ? elements : elements.filter((one) => !added.has(canonical(one)));
}

/** Removes elements that are still there as they were added. */
export function removeElements(draft: Draft, added: readonly Json[], spec: Path, list: Path): void {
  const path = [...spec, ...list];
  const present = draft.get(...path);
  if (added.length === 0 || !Array.isArray(present)) return;
  const texts = new Set(added.map(spelled));
  const gone = new Set(
    (readableElements(present, listRoom()) ?? []).filter((one) => texts.has(canonical(one))),
  );
  const rest = present.filter((one) => !gone.has(one));
  if (rest.length === present.length) return;
  if (rest.length > 0) draft.set(path, rest, undefined);
  else if (draft.remove(path, undefined)) prune(draft, path.slice(0, -1), spec.length);
}

/** Removes empty parents from the inside out, which came with what was in them; never the spec itself. */
export function prune(draft: Draft, path: Path, depth: number): void {
  for (let here = path; here.length > depth; here = here.slice(0, -1)) {
    const value = draft.get(...here);
    if (!isObject(value) || !isEmpty(value)) return;
    draft.remove(here, undefined);
  }
}

/** Reads no more than the first key: a nodeSelector may have a hundred thousand. */
function isEmpty(value: object): boolean {
  for (const _ in value) return false;
  return true;
}
