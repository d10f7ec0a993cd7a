import type { TextDocument, TextProblem } from "./document.ts";
import { parseJson, splitJson } from "./json-text.ts";
import { parseYaml } from "./yaml.ts";

/** One document's part of a file, cut out before anything is parsed, so that a part that did not change is never parsed again. */
export interface Chunk {
  readonly text: string;
  /** Where it begins in the file. */
  readonly offset: number;
}

/**
 * Cuts a file as kubectl does: by lines that begin with `---`, before any YAML is parsed, regardless of what is around them. Only
 * spaces and a comment may follow on such a line. A file that begins with a brace may be a stream of JSON texts instead.
 */
export function cutChunks(text: string): { chunks: Chunk[]; problems: TextProblem[] } {
  if (/^\s*\{/.test(text)) {
    const json = cutJson(text);
    if (json !== undefined) return { chunks: json, problems: [] };
  }
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

function cutJson(text: string): Chunk[] | undefined {
  const spans = splitJson(text);
  if (spans === undefined || spans.length < 2) return undefined;
  const chunks: Chunk[] = [];
  for (const { start, end } of spans) {
    const part = text.slice(start, end);
    if (!parsesAsJson(part)) return undefined;
    chunks.push({ text: part, offset: start });
  }
  return chunks;
}

function parsesAsJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Reads one chunk, as JSON where it is JSON, else as YAML. */
export function parseChunk({ text }: Pick<Chunk, "text">): TextDocument {
  const json = /^\s*[{[]/.test(text) ? parseJson(text) : undefined;
  return json ?? parseYaml(text);
}
