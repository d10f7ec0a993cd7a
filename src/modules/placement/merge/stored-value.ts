import type { Draft } from "../../../core/evaluate/draft.ts";
import { canonical, type Json, type JsonObject } from "../../../core/json.ts";
import { type Path, pointer } from "../../../core/path.ts";
import { type Origin, provenanceOf } from "../../../core/provenance/origin.ts";

/**
 * What was at a place before it was taken back in this evaluation, in order to be written anew; `undefined` where nothing was. Only what is
 * taken back is edited without a finding.
 */
export function storedValue(draft: Draft, path: Path): Json | undefined {
  // Of what is being made nothing was ever there.
  if (draft.old === undefined) return undefined;
  for (const edit of draft.edits) {
    if (edit.finding !== undefined || edit.path.length !== path.length) continue;
    if (edit.path.every((step, i) => step === path[i])) return edit.previous;
  }
  return undefined;
}

/** By stored object, which nobody changes: each list of each policy asks for it. */
const notes = new WeakMap<JsonObject, readonly Origin[]>();

/** What policies have put into the stored object. */
export function storedOrigins(old: JsonObject | undefined): readonly Origin[] {
  if (old === undefined) return [];
  const origins = notes.get(old) ?? provenanceOf(old).filter(({ module }) => module === "placement");
  notes.set(old, origins);
  return origins;
}

/** What policies have added to a list of the stored object and is not taken back, neither with these origins nor before. */
export function stayingIn(draft: Draft, path: Path, origins: readonly Origin[]): readonly Json[] {
  const list = pointer(path);
  const keysOf = ({ policy, added }: Origin) =>
    (added[list] ?? []).map((one) => `${policy} ${canonical(one)}`);
  const going = new Set([...origins, ...draft.disowned].flatMap(keysOf));
  return storedOrigins(draft.old).flatMap((origin) => {
    const elements = origin.added[list] ?? [];
    const keys = keysOf(origin);
    return elements.filter((_, i) => !going.has(keys[i] ?? ""));
  });
}

/**
 * The list of the stored object by which what is written is ordered: the same in another order would be another template, and roll out.
 * None where all that policies had there was taken back: then it is written as if the object were new.
 */
export function storedOrder(draft: Draft, path: Path, stored: Json | undefined): readonly Json[] | undefined {
  if (!Array.isArray(stored)) return undefined;
  const anew = draft.disowned.length > 0 && stayingIn(draft, path, []).length === 0;
  return anew ? undefined : stored;
}
