import { equal, isObject, type Json } from "../../core/json.ts";
import type { Path } from "../../core/path.ts";
import type { Fix } from "../../core/policy/problem.ts";
import { cutDocuments, parseDocument } from "../../files/text/documents.ts";

/** A correction at one place of a text. */
export interface PlacedFix {
  readonly document: number;
  readonly path: Path;
  readonly fix: Fix;
}

/**
 * Corrects a text by the smallest edits: comments, order and layout stay. A correction counts only if it changes the
 * parsed document exactly as intended; any other is left to a person.
 */
export function fixText(text: string, fixes: readonly PlacedFix[]): { text: string; fixed: number } {
  let current = text;
  let fixed = 0;
  // From the end, so that elements of a list keep their place until their turn.
  for (const one of fixes.toReversed()) {
    const next = fixOne(current, one);
    if (next === undefined) continue;
    current = next;
    fixed++;
  }
  return { text: current, fixed };
}

function fixOne(text: string, { document, path, fix }: PlacedFix): string | undefined {
  const chunk = cutDocuments(text).chunks[document];
  if (chunk === undefined) return undefined;
  const parsed = parseDocument(chunk.text);
  const { key, value, exact } = parsed.locate(path);
  if (!exact || parsed.value === undefined) return undefined;
  const written = chunk.text.slice(value.start, value.end).trimEnd();
  const edit =
    "remove" in fix
      ? wholeLines(chunk.text, key?.start ?? value.start, value.start + written.length)
      : "rename" in fix
        ? key && { ...key, to: requoted(chunk.text.slice(key.start, key.end), fix.rename) }
        : { start: value.start, end: value.start + written.length, to: scalarText(written, fix) };
  if (edit === undefined) return undefined;
  const after = `${chunk.text.slice(0, edit.start)}${edit.to}${chunk.text.slice(edit.end)}`;
  const expected = corrected(parsed.value, path, "quote" in fix ? { set: written } : fix);
  const read = parseDocument(after);
  if (expected === undefined || read.problems.length > 0 || !equal(read.value ?? null, expected))
    return undefined;
  return `${text.slice(0, chunk.offset)}${after}${text.slice(chunk.offset + chunk.text.length)}`;
}

/** The lines of a field or element, if nothing else is on them but a comment. */
function wholeLines(text: string, start: number, end: number) {
  const first = text.lastIndexOf("\n", start - 1) + 1;
  const newline = text.indexOf("\n", end);
  const last = newline === -1 ? text.length : newline + 1;
  const isAlone =
    /^\s*(?:- +)?$/.test(text.slice(first, start)) && /^\s*(?:#.*)?\s*$/.test(text.slice(end, last));
  return isAlone ? { start: first, end: last, to: "" } : undefined;
}

/** In the quotes that were there. */
function requoted(before: string, word: string): string {
  const [quote = ""] = /^["']/.exec(before) ?? [];
  return `${quote}${word}${quote}`;
}

function scalarText(written: string, fix: { readonly set: Json } | { readonly quote: true }): string {
  if ("quote" in fix) return JSON.stringify(written);
  return typeof fix.set === "string" ? requoted(written, fix.set) : JSON.stringify(fix.set);
}

/** The document after the correction; `undefined` if the correction would overwrite something else. */
function corrected(value: Json, path: Path, fix: Exclude<Fix, { readonly quote: true }>): Json | undefined {
  const [step, ...rest] = path;
  if (step === undefined) return "set" in fix ? fix.set : undefined;
  if (Array.isArray(value)) {
    const index = Number(step);
    if (rest.length === 0 && "remove" in fix) return value.toSpliced(index, 1);
    const inner = corrected(value[index] ?? null, rest, fix);
    return inner === undefined ? undefined : value.with(index, inner);
  }
  if (!isObject(value)) return undefined;
  const entries = Object.entries(value);
  const at = entries.findIndex(([key]) => key === step);
  if (rest.length > 0 || "set" in fix) {
    const inner = corrected(entries[at]?.[1] ?? null, rest, fix);
    return inner === undefined ? undefined : Object.fromEntries(entries.with(at, [String(step), inner]));
  }
  if ("remove" in fix) return Object.fromEntries(entries.toSpliced(at, 1));
  if (Object.hasOwn(value, fix.rename)) return undefined;
  return Object.fromEntries(entries.with(at, [fix.rename, entries[at]?.[1] ?? null]));
}
