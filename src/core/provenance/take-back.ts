import type { Draft, Origin } from "../decision/draft.ts";
import { at, equal, isObject, type Json } from "../json.ts";
import { controllerOf, isBeingDeleted } from "../kubernetes/object.ts";
import { type Path, steps } from "../path.ts";
import { digestOf, listRoom, type Provenance, readProvenance, takesRoom } from "./annotation.ts";

/**
 * Removes the changes that policies of a module made to the stored object: the previous value is restored, or the path
 * is removed if there was none. A path that another client has changed since stays. Called on a reapply, before the
 * module writes its current values.
 */
export function takeBack(draft: Draft, module: string): void {
  // A controller copies its owner's annotation with the template, and would write the template again.
  if (controllerOf(draft.object) !== undefined || isBeingDeleted(draft.object)) return;
  const stored = readProvenance(draft.old);
  const room = listRoom();
  const mine = stored.origins.filter((origin) => origin.module === module);
  for (const place of new Set(mine.flatMap(({ set }) => set))) {
    const path = pathTo(draft.object, place);
    const now = path === undefined ? undefined : draft.get(...path);
    if (
      path === undefined ||
      now === undefined ||
      !takesRoom(now, room) ||
      !equal(now, at(draft.old, ...path))
    )
      continue;
    const known = valueBefore(stored, place, now);
    if (known === "unknown") continue;
    putBack(
      draft,
      path,
      known.value,
      mine.map((origin) => ({ ...origin, set: [place], added: {} })),
      1,
    );
  }
}

/** The value of a path before policies wrote it; unknown if the current value is not the one that they left. */
export function valueBefore(
  { was }: Provenance,
  place: string,
  now: Json | undefined,
): { readonly value: Json | undefined } | "unknown" {
  const replaced = was.get(place);
  // Strings and numbers that were absent before are recorded by their path alone.
  if (replaced === undefined) return typeof now === "object" ? "unknown" : { value: undefined };
  return replaced.now === digestOf(now) ? { value: replaced.value } : "unknown";
}

/** Writes a previous value; if there was none, the path is removed with its empty parents, down to a depth. */
export function putBack(
  draft: Draft,
  path: Path,
  value: Json | undefined,
  takesBack: readonly Origin[],
  depth: number,
): void {
  if (value !== undefined) draft.set(path, value, undefined, { takesBack });
  else if (draft.remove(path, undefined, { takesBack })) prune(draft, path.slice(0, -1), depth);
}

/** Removes empty parents from the inside out: they were created with their content. */
function prune(draft: Draft, path: Path, depth: number): void {
  for (let here = path; here.length > depth; here = here.slice(0, -1)) {
    const value = draft.get(...here);
    if (!isObject(value) || !isEmpty(value)) return;
    draft.remove(here, undefined);
  }
}

/** Reads only the first key: a nodeSelector may have a hundred thousand. */
function isEmpty(value: object): boolean {
  for (const _ in value) return false;
  return true;
}

/** The path that a pointer names in an object: in lists its steps are indexes. */
function pathTo(object: Json, place: string): Path | undefined {
  const path: (string | number)[] = [];
  let here: Json | undefined = object;
  for (const step of steps(place)) {
    const key: string | number = Array.isArray(here) ? Number(step) : step;
    path.push(key);
    here = at(here, key);
    if (here === undefined) return undefined;
  }
  return path;
}
