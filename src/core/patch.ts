import { Draft } from "./draft.ts";
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
    { readonly path: Path; readonly existed: boolean; readonly element: boolean }
  >();
  for (const edit of draft.edits) {
    const text = Draft.slotOf(edit);
    // The first edit of a place knows what was there before any of ours.
    if (slots.has(text)) continue;
    const element = edit.kind === "append" && edit.slot.length === edit.path.length;
    slots.set(text, { path: edit.slot, existed: edit.existed, element });
  }
  const operations: PatchOperation[] = [];
  for (const [text, { path, existed, element }] of slots) {
    if (insideAnother(text, slots)) continue;
    const value = at(draft.object, ...path);
    if (element) {
      // "-" rather than the index: it says what we mean and does not depend on how many were there.
      if (value !== undefined) operations.push({ op: "add", path: `${pointer(path.slice(0, -1))}/-`, value });
    } else if (value === undefined) {
      if (existed) operations.push({ op: "remove", path: text });
    } else operations.push({ op: existed ? "replace" : "add", path: text, value });
  }
  return operations;
}

/** A place inside one that is written anyway needs no operation of its own. Each slash of a pointer ends one that it is inside of. */
function insideAnother(text: string, slots: ReadonlyMap<string, unknown>): boolean {
  for (let end = text.indexOf("/", 1); end > 0; end = text.indexOf("/", end + 1)) {
    if (slots.has(text.slice(0, end))) return true;
  }
  return false;
}
