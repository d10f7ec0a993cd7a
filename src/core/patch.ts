import { Draft, type Edit } from "./draft.ts";
import { at, type Json } from "./json.ts";
import { type Path, pointer } from "./path.ts";

/** A JSON Patch operation (RFC 6902); these three are all we write. */
export type PatchOperation =
  | { readonly op: "add" | "replace"; readonly path: string; readonly value: Json }
  | { readonly op: "remove"; readonly path: string };

/**
 * The patch that turns the object as it was sent into the draft as it is. Written from the recorded edits, one operation for each
 * place, with the value that is there in the end. Nothing is compared or rebuilt, so what we do not know is not touched.
 */
export function patchOf(draft: Draft): PatchOperation[] {
  const slots = new Map<
    string,
    { readonly path: Path; readonly existed: boolean; readonly kind: Edit["kind"] }
  >();
  for (const edit of draft.edits) {
    const text = Draft.slotOf(edit);
    // The first edit of a place knows what was there before any of ours.
    if (!slots.has(text)) slots.set(text, { path: edit.slot, existed: edit.existed, kind: edit.kind });
  }
  const operations: PatchOperation[] = [];
  for (const [text, { path, existed, kind }] of slots) {
    if (insideAnother(path, slots)) continue;
    const value = at(draft.object, ...path);
    if (kind === "append") {
      // "-" rather than the index: it says what we mean and does not depend on how many were there.
      if (value !== undefined) operations.push({ op: "add", path: `${pointer(path.slice(0, -1))}/-`, value });
    } else if (value === undefined) {
      if (existed || kind === "remove") operations.push({ op: "remove", path: text });
    } else operations.push({ op: existed ? "replace" : "add", path: text, value });
  }
  return operations;
}

/** A place inside one that is written anyway needs no operation of its own. */
function insideAnother(path: Path, slots: ReadonlyMap<string, unknown>): boolean {
  for (let length = 1; length < path.length; length++) {
    if (slots.has(pointer(path.slice(0, length)))) return true;
  }
  return false;
}
