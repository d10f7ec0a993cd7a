import type { Draft } from "../evaluate/draft.ts";
import { at, equal, isObject, type Json } from "../json.ts";
import { controllerOf, isBeingDeleted } from "../kubernetes/object.ts";
import { type Path, steps } from "../path.ts";
import { digestOf, listRoom, type Origin, type Provenance, readProvenance, takesRoom } from "./annotation.ts";

/**
 * Takes back the places that policies of a module set in the stored object: the value from before goes back, or the place goes where there
 * was none. A place that another writer has changed since stays. Called on a reapply, before the module writes what it wants now.
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

/** The value that a place had before policies wrote it; unknown where another value is there than they left. */
export function valueBefore(
  { was }: Provenance,
  place: string,
  now: Json | undefined,
): { readonly value: Json | undefined } | "unknown" {
  const replaced = was.get(place);
  // Texts and numbers that were absent before are recorded by their place alone.
  if (replaced === undefined) return typeof now === "object" ? "unknown" : { value: undefined };
  return replaced.now === digestOf(now) ? { value: replaced.value } : "unknown";
}

/** Writes a value from before; where there was none, the place goes with the parents that are empty then, down to a depth. */
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

/** Removes empty parents from the inside out: they came with what was in them. */
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
