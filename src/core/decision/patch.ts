import { at, copyOf, equal, type Json, setOwn } from "../json.ts";
import { type Path, pointer } from "../path.ts";
import { Draft, type Edit } from "./draft.ts";

/** A JSON Patch operation (RFC 6902); these three are all we write. */
export type PatchOperation =
  | { readonly op: "add" | "replace"; readonly path: string; readonly value: Json }
  | { readonly op: "remove"; readonly path: string };

/**
 * The patch that turns the sent object into the current draft. Built from the recorded edits, one operation for each
 * path, with its final value; none if the value is unchanged. Nothing is rebuilt, so unknown fields are untouched.
 */
export function patchOf(draft: Draft): PatchOperation[] {
  return operationsOf(draft, 0, draft.edits.length);
}

/** Whether the edits between two marks leave anything changed: they may cancel each other out, or be undone by later ones. */
export function leaveChange(draft: Draft, from: number, to: number): boolean {
  const first = from < to ? draft.edits[from] : undefined;
  // Nearly always the first edit adds something, which is still there.
  if (first !== undefined && !first.existed && at(draft.object, ...first.slot) !== undefined) return true;
  return operationsOf(draft, from, to).length > 0;
}

function operationsOf(draft: Draft, from: number, to: number): PatchOperation[] {
  const slots = new Map<string, number>();
  for (let i = from; i < to; i++) {
    const edit = draft.edits[i];
    if (edit === undefined) break;
    const text = Draft.slotOf(edit);
    // The first edit of a path has the original value.
    if (!slots.has(text)) slots.set(text, i);
  }
  const operations: PatchOperation[] = [];
  for (const [text, first] of slots) {
    const edit = draft.edits[first];
    if (edit === undefined || insideAnother(text, slots)) continue;
    const { slot: path, existed } = edit;
    const value = at(draft.object, ...path);
    if (edit.kind === "append" && path.length === edit.path.length) {
      // "-" rather than the index: it expresses an append and does not depend on the length.
      if (value !== undefined) operations.push({ op: "add", path: `${pointer(path.slice(0, -1))}/-`, value });
    } else if (value === undefined) {
      if (existed) operations.push({ op: "remove", path: text });
    } else if (!existed) operations.push({ op: "add", path: text, value });
    else if (!equal(value, before(draft.edits, first, from)))
      operations.push({ op: "replace", path: text, value });
  }
  return operations;
}

/** The value of a slot before the edits: that of its first edit, without earlier edits further inside. */
function before(edits: readonly Edit[], first: number, from: number): Json | undefined {
  const edit = edits[first];
  if (edit?.previous === undefined) return undefined;
  const depth = edit.slot.length;
  let copy: Json | undefined;
  for (let i = first - 1; i >= from; i--) {
    const inner = edits[i];
    if (inner === undefined || inner.slot.length <= depth || !startsWith(inner.slot, edit.slot)) continue;
    copy ??= copyOf(edit.previous);
    undoEdit(copy, inner.slot.slice(depth), inner);
  }
  return copy ?? edit.previous;
}

function startsWith(path: Path, start: Path): boolean {
  for (let i = 0; i < start.length; i++) if (path[i] !== start[i]) return false;
  return true;
}

/** Undoes one edit in a copy of its container. Newest first, each finds its path unchanged. */
function undoEdit(copy: Json, place: Path, { existed, previous }: Edit): void {
  const container = at(copy, ...place.slice(0, -1)) as Record<string, Json | undefined> | Json[] | undefined;
  const key = place.at(-1) ?? "";
  if (Array.isArray(container)) {
    if (existed) container[Number(key)] = copyOf(previous ?? null);
    else container.length = Number(key);
  } else if (container !== undefined) {
    if (existed) setOwn(container, String(key), copyOf(previous ?? null));
    else delete container[String(key)];
  }
}

/** Fewer than this are compared one by one, which creates no new strings. */
const FEW = 8;

/** A path inside one that is written anyway needs no operation. Each slash of a pointer ends one of its ancestors. */
function insideAnother(text: string, slots: ReadonlyMap<string, number>): boolean {
  if (slots.size < FEW) {
    for (const other of slots.keys()) if (text[other.length] === "/" && text.startsWith(other)) return true;
    return false;
  }
  for (let end = text.indexOf("/", 1); end > 0; end = text.indexOf("/", end + 1)) {
    if (slots.has(text.slice(0, end))) return true;
  }
  return false;
}
