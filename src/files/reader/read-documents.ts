import { isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";
import type { Path } from "../../core/path.ts";
import { WRITE_IN_QUOTES } from "../../core/policy/problem.ts";
import { codeFrame, LineIndex, positionAt } from "../text/code-frame.ts";
import { type Chunk, cutDocuments, parseDocument } from "../text/documents.ts";
import type { Span, TextDocument, TextProblem, ValueSpan } from "../text/yaml.ts";

/** A problem with its position in the file and the lines around it, so that the text itself need not be kept. */
export interface Located {
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly hint?: string;
  readonly frame: string;
}

/** One object of a text. `locateProblems` finds positions in it by `document` and `path`. */
export interface DocumentValue {
  /** The document that contains it, from 0. */
  readonly document: number;
  readonly path: Path;
  readonly value: Json;
}

/** The objects of one document, or its problems. */
export function readDocument(
  text: string,
  chunk: Chunk,
  document: number,
): { readonly manifests: readonly DocumentValue[]; readonly problems: readonly Located[] } {
  const { value, problems } = parseDocument(chunk.text);
  const manifests = value === undefined ? [] : itemsOf(value).map((item) => ({ document, ...item }));
  return { manifests, problems: problems.map((problem) => located(text, inFile(problem, chunk))) };
}

/** One object of a document: the document itself, or an item of a list. */
interface Item {
  readonly path: Path;
  readonly value: Json;
}

/**
 * A `kind: List` is replaced by its items, also nested, as kubectl flattens them. Items of a typed list (`NodeList`, as
 * the API returns it) lack apiVersion and kind, which are filled in.
 */
function itemsOf(value: Json, path: Path = []): Item[] {
  const kind = stringAt(value, "kind");
  const items = isObject(value) && Object.hasOwn(value, "items") ? value["items"] : undefined;
  if (kind === undefined || !kind.endsWith("List") || !Array.isArray(items)) return [{ path, value }];
  const apiVersion = stringAt(value, "apiVersion");
  const itemKind = kind.slice(0, -"List".length);
  return items.flatMap((item: Json, i) => {
    const known = isObject(item) && itemKind !== "" && apiVersion !== undefined;
    return itemsOf(known ? withKind(item, apiVersion, itemKind) : item, [...path, "items", i]);
  });
}

function withKind(item: JsonObject, apiVersion: string, kind: string): JsonObject {
  return Object.hasOwn(item, "kind") ? item : { apiVersion, kind, ...item };
}

function inFile<T extends Span>(span: T, chunk: Chunk): T {
  return { ...span, start: span.start + chunk.offset, end: span.end + chunk.offset };
}

/** A problem of a text with its position and the lines around it. */
export function located(text: string, problem: TextProblem): Located {
  const { message, hint } = problem;
  return {
    ...positionAt(text, problem.start),
    message,
    ...(hint === undefined ? {} : { hint }),
    frame: codeFrame(text, problem, hint),
  };
}

/** A problem inside an object, to be located in the file. */
export interface Wanted {
  readonly document: number;
  readonly path: Path;
  readonly message: string;
  readonly hint?: string;
}

/** Finds the positions of problems. `undefined` if the text has no such document. */
export function locateProblems(text: string, wanted: readonly Wanted[]): (Located | undefined)[] {
  const { chunks } = cutDocuments(text);
  // Problems are grouped by document, and a syntax tree takes more memory than its text: only one is kept.
  let last: { readonly chunk: Chunk; readonly parsed: TextDocument } | undefined;
  return wanted.map(({ document, path, message, hint }) => {
    const chunk = chunks[document];
    if (chunk === undefined) return undefined;
    if (last?.chunk !== chunk) last = { chunk, parsed: parseDocument(chunk.text) };
    const { parsed } = last;
    const place = parsed.locate(path);
    const quoted = hint === WRITE_IN_QUOTES ? quotedValue(place, chunk.text) : undefined;
    const span = quoted === undefined ? spanFor(place, chunk.text, message) : place.value;
    const advice = quoted === undefined ? hint : `${WRITE_IN_QUOTES}: ${quoted}`;
    return located(text, {
      ...inFile(span, chunk),
      message,
      ...(advice === undefined ? {} : { hint: advice }),
    });
  });
}

/** The line of any field of a text, from one. Documents are parsed once each, for many places of one text. */
export function linesOf(text: string): (document: number, path: Path) => number {
  const { chunks } = cutDocuments(text);
  const lines = new LineIndex(text);
  const parsed = new Map<Chunk, TextDocument>();
  return (document, path) => {
    const chunk = chunks[document];
    if (chunk === undefined) return 1;
    const known = parsed.get(chunk) ?? parseDocument(chunk.text);
    parsed.set(chunk, known);
    const { key, value } = known.locate(path);
    return lines.lineAt(chunk.offset + (key ?? value).start);
  };
}

/** A longer scalar was not meant as a boolean or number. */
const QUOTED_LENGTH = 60;

/** The scalar as written, in quotes: `"yes"` and `"1.10"`, which parse to true and 1.1. */
function quotedValue({ value, exact }: ValueSpan, text: string): string | undefined {
  const written = text.slice(value.start, value.end).trim();
  return exact && /^[\w.+-]+$/.test(written) && written.length <= QUOTED_LENGTH ? `"${written}"` : undefined;
}

/**
 * Whether the key or the value is wrong: a message that quotes the value is about the value. A missing field is shown
 * at the key of its parent.
 */
function spanFor(place: ValueSpan, text: string, message: string): Span {
  const { key, value, exact } = place;
  if (key === undefined) return firstLine(value, text);
  const written = text
    .slice(value.start, value.end)
    .trim()
    .replace(/^(["'])(.*)\1$/s, "$2");
  const quotes = exact && written !== "" && !written.includes("\n") && message.includes(written);
  return quotes ? firstLine(value, text) : key;
}

function firstLine({ start, end }: Span, text: string): Span {
  const newline = text.indexOf("\n", start);
  return { start, end: newline === -1 || newline > end ? end : Math.max(start + 1, newline) };
}

/** Reads a whole text. `line` is where an object begins, from one. */
export function readManifests(text: string): {
  manifests: (DocumentValue & { readonly line: () => number })[];
  problems: Located[];
} {
  const { chunks, problems } = cutDocuments(text);
  const found = problems.map((problem) => located(text, problem));
  const manifests: (DocumentValue & { readonly line: () => number })[] = [];
  let lines: LineIndex | undefined;
  for (const [i, chunk] of chunks.entries()) {
    const document = readDocument(text, chunk, i);
    found.push(...document.problems);
    let parsed: TextDocument | undefined;
    for (const manifest of document.manifests) {
      const line = () => {
        lines ??= new LineIndex(text);
        if (manifest.path.length === 0) return lines.lineAt(chunk.offset + contentOffset(chunk.text));
        parsed ??= parseDocument(chunk.text);
        return lines.lineAt(chunk.offset + parsed.locate(manifest.path).value.start);
      };
      manifests.push({ ...manifest, line });
    }
  }
  return { manifests, problems: found };
}

/** Blank lines and comments before a document. */
function contentOffset(text: string): number {
  return /^(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*/.exec(text)?.[0].length ?? 0;
}
