import { hash } from "node:crypto";
import type { Json } from "../../core/json.ts";
import type { Path } from "../../core/path.ts";
import { WRITE_IN_QUOTES } from "../../core/policy/problem.ts";
import type { Chunk } from "../text/chunks.ts";
import { cutChunks, parseChunk } from "../text/chunks.ts";
import { codeFrame, positionAt } from "../text/code-frame.ts";
import type { Place, Span, TextDocument, TextProblem } from "../text/document.ts";
import { LineIndex } from "../text/line-index.ts";
import { itemsOf } from "./items.ts";

/** A problem with its place in the file and the lines around it, so that the text itself need not be kept. */
export interface Located {
  readonly line: number;
  readonly column: number;
  readonly message: string;
  readonly hint?: string;
  readonly frame: string;
}

/** One object of a document. */
export interface Piece {
  readonly path: Path;
  readonly hash: string;
  /** As JSON text: it crosses from the worker cheaply and is parsed fast. `undefined`: known by its hash. */
  readonly json: string | undefined;
}

export interface ReadDocument {
  readonly hash: string;
  readonly pieces: readonly Piece[];
  readonly problems: readonly Located[];
}

/**
 * Reads one document of a file. Of a document whose text is known only its hash is given, and it is not parsed; of a changed list
 * only the items that are not known are given.
 */
export function readChunk(text: string, chunk: Chunk, known: ReadonlySet<string>): ReadDocument | string {
  const name = digest(chunk.text);
  if (known.has(name)) return name;
  const { value, problems } = parseChunk(chunk);
  if (problems.length > 0 || value === undefined) {
    const moved = problems.map((problem) => located(text, inFile(problem, chunk)));
    return { hash: name, pieces: [], problems: moved };
  }
  const items = itemsOf(value);
  const pieces = items.map(({ path, value: item }): Piece => {
    // The only object of its document changes whenever the document does, and needs no hash of its own.
    if (path.length === 0) return { path, hash: name, json: JSON.stringify(item) };
    const json = JSON.stringify(item);
    const itemName = digest(json);
    return { path, hash: itemName, json: known.has(itemName) ? undefined : json };
  });
  return { hash: name, pieces, problems: [] };
}

/** 96 bits: two texts that differ have the same with a chance that can be forgotten, also among a million. */
function digest(text: string): string {
  return hash("sha1", text, "base64").slice(0, 16);
}

function inFile<T extends Span>(span: T, chunk: Chunk): T {
  return { ...span, start: span.start + chunk.offset, end: span.end + chunk.offset };
}

/** A problem of a text with its place and the lines around it. */
export function located(text: string, problem: TextProblem): Located {
  const { message, hint } = problem;
  return {
    ...positionAt(text, problem.start),
    message,
    ...(hint === undefined ? {} : { hint }),
    frame: codeFrame(text, problem, hint),
  };
}

/** A problem inside an object, to be found in the file. */
export interface Wanted {
  readonly document: string;
  readonly path: Path;
  readonly message: string;
  readonly hint?: string;
}

/** Finds the positions of problems. `undefined` where the document is not in the file any more. */
export function locateProblems(text: string, wanted: readonly Wanted[]): (Located | undefined)[] {
  const { chunks } = cutChunks(text);
  const byHash = new Map(chunks.map((chunk) => [digest(chunk.text), chunk]));
  // Problems come document by document, and a syntax tree takes more memory than its text: only one is kept.
  let last: { readonly chunk: Chunk; readonly parsed: TextDocument } | undefined;
  return wanted.map(({ document, path, message, hint }) => {
    const chunk = byHash.get(document);
    if (chunk === undefined) return undefined;
    if (last?.chunk !== chunk) last = { chunk, parsed: parseChunk(chunk) };
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

/** A longer scalar is no value that was meant as a boolean or number. */
const QUOTED_LENGTH = 60;

/** The scalar as it is written, in quotes: `"yes"` and `"1.10"`, which JSON has as true and 1.1. */
function quotedValue({ value, exact }: Place, text: string): string | undefined {
  const written = text.slice(value.start, value.end).trim();
  return exact && /^[\w.+-]+$/.test(written) && written.length <= QUOTED_LENGTH ? `"${written}"` : undefined;
}

/**
 * Whether the key or the value is what is wrong: a message that quotes the value is about the value. Something that is
 * missing is shown where it should be, at the key of what it should be in.
 */
function spanFor(place: Place, text: string, message: string): Span {
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

/** One object of a text that the command line reads. `locateProblems` finds its places by `document` and `path`. */
export interface Manifest {
  readonly document: string;
  readonly path: Path;
  readonly value: Json;
  /** Where it begins, from one. */
  readonly line: () => number;
}

/** Reads a text that is no part of a source: a manifest to be judged. */
export function readManifests(text: string): { manifests: Manifest[]; problems: Located[] } {
  const { chunks, problems } = cutChunks(text);
  const found = problems.map((problem) => located(text, problem));
  const manifests: Manifest[] = [];
  let lines: LineIndex | undefined;
  for (const chunk of chunks) {
    const document = readChunk(text, chunk, NOTHING_KNOWN);
    if (typeof document === "string") continue;
    found.push(...document.problems);
    let parsed: TextDocument | undefined;
    for (const { path, json } of document.pieces) {
      const line = () => {
        lines ??= new LineIndex(text);
        if (path.length === 0) return lines.lineAt(chunk.offset + contentOffset(chunk.text));
        parsed ??= parseChunk(chunk);
        return lines.lineAt(chunk.offset + parsed.locate(path).value.start);
      };
      manifests.push({ document: document.hash, path, value: JSON.parse(json ?? "null") as Json, line });
    }
  }
  return { manifests, problems: found };
}

/** Blank lines and comments before a document. */
function contentOffset(text: string): number {
  return /^(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*/.exec(text)?.[0].length ?? 0;
}

const NOTHING_KNOWN: ReadonlySet<string> = new Set();
