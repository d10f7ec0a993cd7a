import type { Draft } from "../../../core/evaluate/draft.ts";
import type { Json, JsonObject } from "../../../core/json.ts";
import { type Path, pointer } from "../../../core/path.ts";
import { type Origin, provenanceOf, spelled } from "../../../core/provenance/origin.ts";

/**
 * What was at a place before it was removed in this evaluation, in order to be written again; `undefined` where nothing was. Only removals
 * are edits without a finding.
 */
export function storedValue(draft: Draft, path: Path): Json | undefined {
  // A new object has nothing stored.
  if (draft.old === undefined) return undefined;
  for (const edit of draft.edits) {
    if (edit.finding !== undefined || edit.path.length !== path.length) continue;
    if (edit.path.every((step, i) => step === path[i])) return edit.previous;
  }
  return undefined;
}

/** The injections that the stored object's provenance names. */
export function storedOrigins(old: JsonObject | undefined): readonly Origin[] {
  return provenanceOf(old).filter(({ module }) => module === "placement");
}

/** What policies have added to a list of the stored object and is not removed, neither with these origins nor before. */
export function stayingIn(draft: Draft, path: Path, removed: readonly Origin[]): readonly Json[] {
  const list = pointer(path);
  const keysOf = ({ policy, added }: Origin) => (added[list] ?? []).map((one) => `${policy} ${spelled(one)}`);
  const going = new Set([...removed, ...draft.disowned].flatMap(keysOf));
  return storedOrigins(draft.old).flatMap((origin) => {
    const elements = origin.added[list] ?? [];
    const keys = keysOf(origin);
    return elements.filter((_, i) => !going.has(keys[i] ?? ""));
  });
}

/**
 * The stored list by whose order elements are written: another order would be another template, and roll out. None where all that
 * policies had added was removed: then it is written as in a new object.
 */
export function storedOrder(draft: Draft, path: Path, stored: Json | undefined): readonly Json[] | undefined {
  if (!Array.isArray(stored)) return undefined;
  const renewed = draft.disowned.length > 0 && stayingIn(draft, path, []).length === 0;
  return renewed ? undefined : stored;
}
