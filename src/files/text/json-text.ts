import type { Json } from "../../core/json.ts";
import type { Path } from "../../core/path.ts";
import {
  MAX_DEPTH,
  type Place,
  type Span,
  type TextDocument,
  type TextProblem,
  TOO_DEEP,
} from "./document.ts";

/**
 * JSON files take this way because `JSON.parse` is a hundred times faster than a YAML parser, and `kubectl get -o json` writes
 * large ones. What `JSON.parse` does not report, duplicate keys and positions, is found by a walk over the tokens.
 */
const BETWEEN = /[^\s{}[\],:"]+|[{}[\],:"]/g;

interface Token {
  readonly word: string;
  readonly start: number;
}

/** Strings are skipped with `indexOf`: a pattern for them would run out of stack on one of ten megabytes. */
function* tokens(text: string): Iterable<Token> {
  BETWEEN.lastIndex = 0;
  let next = 0;
  for (;;) {
    BETWEEN.lastIndex = next;
    const found = BETWEEN.exec(text);
    if (found === null) return;
    const start = found.index;
    next = found[0] === '"' ? endOfString(text, start) : start + found[0].length;
    yield { word: text.slice(start, next), start };
  }
}

function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote !== -1; quote = text.indexOf('"', quote + 1)) {
    let backslashes = 0;
    while (text[quote - 1 - backslashes] === "\\") backslashes++;
    if (backslashes % 2 === 0) return quote + 1;
  }
  return text.length;
}

interface Level {
  readonly list: boolean;
  readonly keys: Set<string>;
  index: number;
  key: string | undefined;
  keySpan: Span | undefined;
}

interface Visit {
  /** A value begins: its offset, and its key. `above` are the levels that it is inside of. */
  readonly value: (above: readonly Level[], start: number) => void;
  readonly closed?: (depth: number, end: number) => void;
  readonly twice?: (key: string, span: Span) => void;
  readonly deep?: (span: Span) => void;
}

/** Walks tokens of a text that `JSON.parse` accepts. Of any other text it finds something, but never fails or hangs. */
function walk(text: string, visit: Visit): void {
  const levels: Level[] = [];
  for (const { word, start } of tokens(text)) {
    const level = levels.at(-1);
    if (word === ":") continue;
    if (word === "}" || word === "]") {
      levels.pop();
      visit.closed?.(levels.length, start + 1);
    } else if (word === ",") {
      if (level !== undefined) {
        level.index++;
        level.key = undefined;
      }
    } else if (level !== undefined && !level.list && level.key === undefined) {
      const span = { start, end: start + word.length };
      level.key = textOf(word);
      level.keySpan = span;
      if (level.keys.has(level.key)) visit.twice?.(level.key, span);
      level.keys.add(level.key);
    } else {
      visit.value(levels, start);
      if (word !== "{" && word !== "[") {
        visit.closed?.(levels.length, start + word.length);
        continue;
      }
      levels.push({ list: word === "[", keys: new Set(), index: 0, key: undefined, keySpan: undefined });
      if (levels.length === MAX_DEPTH + 1) visit.deep?.({ start, end: start + 1 });
    }
  }
}

function textOf(token: string): string {
  if (!token.startsWith('"')) return token;
  if (!token.includes("\\")) return token.slice(1, -1);
  try {
    return String(JSON.parse(token));
  } catch {
    return token;
  }
}

/** The values of a stream of JSON texts one after the other, as kubectl accepts them; `undefined` where it is no such stream. */
export function splitJson(text: string): Span[] | undefined {
  const spans: Span[] = [];
  let open: number | undefined;
  walk(text, {
    value: (above, start) => {
      if (above.length === 0) open = start;
    },
    closed: (depth, end) => {
      if (depth === 0 && open !== undefined) {
        spans.push({ start: open, end });
        open = undefined;
      }
    },
  });
  return open === undefined ? spans : undefined;
}

/** One JSON text, or nothing where it is no JSON: flow style YAML begins with a brace as well. */
export function parseJson(text: string): TextDocument | undefined {
  let value: Json;
  try {
    value = JSON.parse(text) as Json;
  } catch {
    return undefined;
  }
  const problems: TextProblem[] = [];
  walk(text, {
    value: () => {},
    twice: (key, span) => problems.push({ ...span, message: `duplicate key ${JSON.stringify(key)}` }),
    deep: (span) => {
      if (problems.at(-1)?.message !== TOO_DEEP) problems.push({ ...span, message: TOO_DEEP });
    },
  });
  const root: Node = { key: undefined, start: text.search(/\S/), end: text.trimEnd().length };
  return {
    value: problems.length > 0 ? undefined : value,
    problems,
    locate: (path) => locate(text, root, path),
  };
}

/** A value in the text. What is inside is looked for when it is asked for, once: to locate every item of a list takes one walk over it. */
interface Node extends Span {
  readonly key: Span | undefined;
  inside?: ReadonlyMap<string, Node>;
}

function insideOf(text: string, { start: offset, end }: Node): ReadonlyMap<string, Node> {
  const found = new Map<string, Node>();
  const moved = (span: Span) => ({ start: span.start + offset, end: span.end + offset });
  let open: { readonly step: string; readonly key: Span | undefined; readonly start: number } | undefined;
  walk(text.slice(offset, end), {
    value: ([level, deeper], start) => {
      if (level === undefined || deeper !== undefined) return;
      const key = level.list ? undefined : level.keySpan;
      open = { step: level.list ? String(level.index) : (level.key ?? ""), key, start };
    },
    closed: (depth, at) => {
      if (depth !== 1 || open === undefined) return;
      const { step, key, start } = open;
      const node = { key: key === undefined ? undefined : moved(key), ...moved({ start, end: at }) };
      if (!found.has(step)) found.set(step, node);
    },
  });
  return found;
}

function locate(text: string, root: Node, path: Path): Place {
  let here = root;
  for (const step of path) {
    here.inside ??= insideOf(text, here);
    const next = here.inside.get(String(step));
    if (next === undefined)
      return { key: here.key, value: { start: here.start, end: here.start + 1 }, exact: false };
    here = next;
  }
  return { key: here.key, value: { start: here.start, end: here.end }, exact: true };
}
