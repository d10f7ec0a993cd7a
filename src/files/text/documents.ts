import type { Json } from "../../core/json.ts";
import type { Path } from "../../core/path.ts";
import {
  locatorOf,
  MAX_DEPTH,
  parseYaml,
  type TextDocument,
  type TextProblem,
  TOO_DEEP,
  tooLarge,
  type ValueSpan,
} from "./yaml.ts";

/** One document's part of a file. */
export interface Chunk {
  readonly text: string;
  /** Its offset in the file. */
  readonly offset: number;
}

/**
 * Cuts a file as kubectl does: at lines that begin with `---`, before any YAML is parsed, regardless of context. Only
 * spaces and a comment may follow on such a line. A file that begins with a brace may be a stream of JSON texts
 * instead.
 */
export function cutDocuments(text: string): { chunks: Chunk[]; problems: TextProblem[] } {
  const stream = /^\s*\{/.test(text) ? cutJson(text) : undefined;
  if (stream !== undefined) return { chunks: stream, problems: [] };
  const chunks: Chunk[] = [];
  const problems: TextProblem[] = [];
  let offset = 0;
  for (const mark of marks(text)) {
    const part = text.slice(offset, mark);
    if (part.trim() !== "") chunks.push({ text: part, offset });
    const newline = text.indexOf("\n", mark);
    const next = newline === -1 ? text.length : newline + 1;
    const rest = text.slice(mark + 3, next).trim();
    if (rest !== "" && !rest.startsWith("#")) {
      problems.push({
        start: mark + 3,
        end: mark + 3 + rest.length,
        message: "only a comment may follow --- on its line",
        hint: "put the document on the next line",
      });
    }
    offset = next;
  }
  const last = text.slice(offset);
  if (last.trim() !== "") chunks.push({ text: last, offset });
  return { chunks, problems };
}

/** Where lines begin with `---`. */
function* marks(text: string): Iterable<number> {
  if (text.startsWith("---")) yield 0;
  for (let i = text.indexOf("\n---"); i !== -1; i = text.indexOf("\n---", i + 1)) yield i + 1;
}

/**
 * JSON texts in sequence; `undefined` if it is one text, or none. The error of `JSON.parse` has the end of the first of
 * several.
 */
function cutJson(text: string): Chunk[] | undefined {
  const chunks: Chunk[] = [];
  for (let offset = 0; ; ) {
    const rest = text.slice(offset);
    try {
      JSON.parse(rest);
      return chunks.length === 0 ? undefined : [...chunks, { text: rest, offset }];
    } catch (error) {
      const end = Number(/after JSON at position (\d+)/.exec(String(error))?.[1] ?? 0);
      if (end === 0 || rest[end] !== "{") return undefined;
      chunks.push({ text: rest.slice(0, end), offset });
      offset += end;
    }
  }
}

/** Reads one document as JSON if possible, else as YAML. */
export function parseDocument(text: string): TextDocument {
  const json = /^\s*[{[]/.test(text) ? parseJson(text) : undefined;
  return json ?? parseYaml(text);
}

/**
 * `JSON.parse` is a hundred times faster than a YAML parser, and `kubectl get -o json` writes large files. It reports
 * neither positions nor duplicate keys: for these, the YAML parser reads the text. `undefined`: not JSON, perhaps YAML
 * in flow style.
 */
function parseJson(text: string): TextDocument | undefined {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
  let locator: ((path: Path) => ValueSpan) | undefined;
  const root = { start: text.search(/\S/), end: text.trimEnd().length };
  const locate = (path: Path): ValueSpan => {
    if (path.length === 0) return { key: undefined, value: root, exact: true };
    locator ??= locatorOf(text);
    const place = locator(path);
    // The nearest ancestor may be the rest of a long line.
    return place.exact
      ? place
      : { ...place, value: { start: place.value.start, end: place.value.start + 1 } };
  };
  const fault = faultIn(value, 0) ?? (droppedKeys(value, text) ? "has a duplicate key" : undefined);
  if (fault === undefined) return { value, problems: [], locate };
  if (tooLarge(text) === undefined) return parseYaml(text);
  return { value: undefined, problems: [{ start: 0, end: 1, message: fault }], locate };
}

/** Values that `JSON.parse` accepts and the rest of usher does not. */
function faultIn(value: Json | undefined, depth: number): string | undefined {
  if (depth > MAX_DEPTH) return TOO_DEEP;
  if (typeof value === "number") return Number.isFinite(value) ? undefined : "has a number beyond 64 bits";
  if (typeof value !== "object" || value === null) return undefined;
  for (const inner of Object.values(value)) {
    const fault = faultIn(inner, depth + 1);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** `JSON.parse` drops the first of two equal keys. If the value has fewer quotes than the text, a key is missing. */
function droppedKeys(value: Json, text: string): boolean {
  const written = text.includes("\\u0022")
    ? text.replace(/\\(?:u0022|.)/g, (one) => (one === "\\u0022" ? '\\"' : one))
    : text;
  return quotesIn(written) !== quotesIn(JSON.stringify(value));
}

function quotesIn(text: string): number {
  let count = 0;
  for (let i = text.indexOf('"'); i !== -1; i = text.indexOf('"', i + 1)) count++;
  return count;
}
