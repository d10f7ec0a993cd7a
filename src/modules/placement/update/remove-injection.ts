import type { Draft } from "../../../core/evaluate/draft.ts";
import { at, canonical, equal, isObject, type Json } from "../../../core/json.ts";
import { type Path, pointer, steps } from "../../../core/path.ts";
import { type Origin, shallow } from "../../../core/provenance/origin.ts";
import { withoutAdded } from "../criteria/node-terms/node-terms.ts";
import { LISTS, NAMES, REQUIRED_NODE_AFFINITY, REQUIRED_NODE_TERMS } from "../criteria/places.ts";
import { stayingIn } from "../merge/stored-value.ts";

/**
 * Takes out of the object what origins name, where it is still there as the policy wrote it; parents that are empty then go as well, as
 * they came with it. Several at once where they go together: requirements that two of them have added can only so be told apart from
 * the pod's own.
 *
 * What pod and policy both say can't always be told apart: a requirement that the pod has in some of its terms only, and the policy
 * in all, goes from all that were combined with the policy's.
 */
export function removeInjection(draft: Draft, origin: Origin | readonly Origin[], spec: Path): void {
  const origins = "policy" in origin ? [origin] : origin;
  for (const { set } of origins) takeNodeSelector(draft, set, spec);
  for (const field of NAMES) {
    const path = [...spec, field];
    const place = pointer(path);
    if (origins.some(({ set }) => set.includes(place)) && asStored(draft, path))
      draft.remove(path, undefined);
  }
  for (const { path } of LISTS) takeElements(draft, addedTo(origins, [...spec, ...path]), spec, path);
  takeRequiredTerms(draft, origins, spec);
}

function addedTo(origins: readonly Origin[], list: Path): readonly Json[] {
  const place = pointer(list);
  return origins.flatMap(({ added }) => added[place] ?? []);
}

/** Who has changed a value since has made it his own. */
function asStored(draft: Draft, path: Path): boolean {
  const value = draft.get(...path);
  return value !== undefined && (draft.old === undefined || equal(value, at(draft.old, ...path)));
}

function takeNodeSelector(draft: Draft, places: readonly string[], spec: Path): void {
  const parent = [...spec, "nodeSelector"];
  const prefix = `${pointer(parent)}/`;
  let taken = false;
  for (const place of places) {
    if (!place.startsWith(prefix)) continue;
    const [key = "", ...deeper] = steps(place).slice(parent.length);
    const path = [...parent, key];
    if (deeper.length === 0 && asStored(draft, path)) taken = draft.remove(path, undefined) || taken;
  }
  if (taken) prune(draft, parent, spec.length);
}

function takeElements(draft: Draft, added: readonly Json[], spec: Path, list: Path): void {
  const path = [...spec, ...list];
  const present = draft.get(...path);
  if (added.length === 0 || !Array.isArray(present)) return;
  const texts = new Set(added.map(canonical));
  const rest = present.filter((one) => !shallow(one) || !texts.has(canonical(one)));
  if (rest.length === present.length) return;
  if (rest.length > 0) draft.set(path, rest, undefined);
  else if (draft.remove(path, undefined)) prune(draft, path.slice(0, -1), spec.length);
}

function takeRequiredTerms(draft: Draft, origins: readonly Origin[], spec: Path): void {
  const path = [...spec, ...REQUIRED_NODE_TERMS];
  const added = addedTo(origins, path);
  const present = draft.get(...path);
  if (added.length === 0 || !Array.isArray(present) || !present.every(shallow)) return;
  const rest = withoutAdded(present, added, stayingIn(draft, path, origins));
  if (rest !== undefined) {
    if (!equal(rest, present)) draft.set(path, rest, undefined);
    return;
  }
  draft.remove(path, undefined);
  // Without a term it would match no node, whatever else is in it.
  const required = [...spec, ...REQUIRED_NODE_AFFINITY];
  if (draft.remove(required, undefined)) prune(draft, required.slice(0, -1), spec.length);
}

/** Takes empty objects out, from the inside, but never the spec itself. */
function prune(draft: Draft, path: Path, depth: number): void {
  for (let here = path; here.length > depth; here = here.slice(0, -1)) {
    const value = draft.get(...here);
    if (!isObject(value) || Object.keys(value).length > 0) return;
    draft.remove(here, undefined);
  }
}
