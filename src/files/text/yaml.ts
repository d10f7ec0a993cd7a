import v8 from "node:v8";
import {
  type Alias,
  isAlias,
  isMap,
  isNode,
  isScalar,
  isSeq,
  type Pair,
  parseAllDocuments,
  Scalar,
  type YAMLMap,
} from "yaml";
import { isObject, type Json, setOwn } from "../../core/json.ts";
import type { Path } from "../../core/path.ts";
import { keyText, plainScalar, taggedScalar } from "./scalar.ts";

/** A range of a text, by offsets. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/** An error of the text itself, independent of its meaning. */
export interface TextProblem extends Span {
  readonly message: string;
  readonly hint?: string;
}

/** The position of a path in a text. If the path is absent, that of the nearest ancestor, and `exact` is false. */
export interface ValueSpan {
  readonly key: Span | undefined;
  readonly value: Span;
  readonly exact: boolean;
}

/** One parsed document. `locate` retains the syntax tree, so keep a document no longer than its problems need. */
export interface TextDocument {
  /** `undefined` if the document is empty or can't be parsed. */
  readonly value: Json | undefined;
  readonly problems: readonly TextProblem[];
  readonly locate: (path: Path) => ValueSpan;
}

/**
 * The maximum nesting of a document. Kubernetes' deepest objects (a CRD's schema of a pod template) stay below 60; the
 * limit keeps recursive functions far from a stack overflow.
 */
export const MAX_DEPTH = 512;

export const TOO_DEEP = `is nested more than ${MAX_DEPTH} levels deep`;

/**
 * The maximum number of values that aliases add to one document. An object of 1.5 MiB, etcd's limit, has fewer; a
 * "billion laughs" document has more after a few lines, and is rejected before anything is built.
 */
export const MAX_ALIASED_VALUES = 100_000;

/** More syntax errors than this in one document are consequences of the first ones. */
const MAX_ERRORS = 20;

/**
 * The library only finds the structure (the failsafe schema makes every scalar a string); scalars, keys, merges and
 * aliases are resolved here, as kubectl does. Its own check for unique keys compares every pair of keys, so ours
 * replaces it.
 */
const OPTIONS = {
  version: "1.1",
  schema: "failsafe",
  merge: false,
  resolveKnownTags: false,
  uniqueKeys: false,
  prettyErrors: false,
  logLevel: "silent",
} as const;

/** The library's errors with the remedy. Others keep the library's text. */
const SENTENCES: Readonly<Record<string, { readonly message: string; readonly hint?: string }>> = {
  TAB_AS_INDENT: { message: "tabs can't indent YAML", hint: "use spaces" },
  BAD_INDENT: { message: "inconsistent indentation" },
  MISSING_CHAR: { message: "a bracket, quote, comma or colon is missing here" },
  MULTILINE_IMPLICIT_KEY: { message: "a key must be on one line", hint: 'is a ":" missing?' },
  BLOCK_AS_IMPLICIT_KEY: {
    message: "a value and a nested map can't be on one line",
    hint: "put strings with a colon in quotes",
  },
  BLOCK_IN_FLOW: { message: "inside brackets, lists and maps need brackets too" },
  BAD_DQ_ESCAPE: {
    message: "invalid escape sequence in a double-quoted string",
    hint: "write \\\\ for a backslash",
  },
};

/** The maximum memory of a value in the parser's tree, measured with lists of one character each. */
const BYTES_A_VALUE = 1_024;

/** The parser's tree would not fit into the heap: rejected before it is built, because a process without memory ends. */
export function tooLarge(text: string): TextProblem | undefined {
  const most = Math.floor(v8.getHeapStatistics().heap_size_limit / BYTES_A_VALUE);
  // Each value except the first follows one of these.
  let values = 0;
  if (text.length > most) for (const _ of text.matchAll(/[\n,:[{?-]/g)) if (++values > most) break;
  if (values <= most) return undefined;
  const message = `one YAML document of more than ${most} values does not fit into the memory`;
  return { start: 0, end: 1, message, hint: "separate objects by ---, or write JSON" };
}

/** The structure of a text, with syntax errors. */
function compose(text: string): { readonly root: unknown; readonly problems: TextProblem[] } {
  const large = tooLarge(text);
  if (large !== undefined) return { root: null, problems: [large] };
  const parsed = parseAllDocuments(text, OPTIONS);
  const documents = Array.isArray(parsed) ? parsed : [];
  const [first, second] = documents;
  const problems = documents.flatMap(({ errors }) => errors.map((error) => syntaxProblem(error, text)));
  const deep = problems.find(({ message }) => message === TOO_DEEP);
  if (deep !== undefined) problems.splice(0, problems.length, deep);
  if (second !== undefined && problems.length === 0) {
    const [start = 0] = second.range ?? [];
    problems.push({ start, end: start + 1, message: "second document without a --- separator" });
  }
  return { root: first?.contents ?? null, problems: problems.slice(0, MAX_ERRORS) };
}

/** One YAML document, without its `---`. */
export function parseYaml(text: string): TextDocument {
  const { root, problems } = compose(text);
  if (problems.length > 0) return { value: undefined, problems, locate: () => wholeOf(text) };
  const builder = new Builder();
  const value = builder.build(root, 0);
  const usable = value !== null && builder.problems.length === 0;
  return {
    // A copy: strings of the parser retain the whole text, and values of aliases are shared.
    value: usable ? (JSON.parse(JSON.stringify(value)) as Json) : undefined,
    problems: builder.problems,
    locate: (path) => locate(root, path, text),
  };
}

/** Locates positions in a JSON text. */
export function locatorOf(text: string): (path: Path) => ValueSpan {
  const { root } = compose(text);
  return (path) => locate(root, path, text);
}

function syntaxProblem(
  error: { code: string; message: string; pos: [number, number] },
  text: string,
): TextProblem {
  // The parser reports a missing character at the end of the text; the last line with content is more useful.
  const start = Math.min(error.pos[0], text.trimEnd().length);
  const end = Math.max(error.pos[1], start + 1);
  if (error.code === "RESOURCE_EXHAUSTION") return { start, end, message: TOO_DEEP };
  const bracket = /end with a ([\]}])/.exec(error.message)?.[1];
  if (bracket !== undefined)
    return {
      start,
      end,
      message: "a bracket is not closed",
      hint: `end it with ${bracket}, and indent its lines`,
    };
  const known = Object.hasOwn(SENTENCES, error.code) ? SENTENCES[error.code] : undefined;
  const message = error.message.charAt(0).toLowerCase() + error.message.slice(1);
  return { start, end, ...(known ?? { message }) };
}

/** Converts the tree to plain JSON. A value and its number of values are recorded by anchor as soon as it is built. */
class Builder {
  readonly problems: TextProblem[] = [];
  readonly #anchors = new Map<string, { readonly value: Json; readonly size: number }>();
  #size = 0;
  #aliased = 0;

  build(node: unknown, depth: number): Json {
    if (depth > MAX_DEPTH) {
      // Reported once: everything below is as deep.
      if (!this.problems.some(({ message }) => message === TOO_DEEP)) this.#problem(node, TOO_DEEP);
      return null;
    }
    if (isAlias(node)) return this.#alias(node);
    const before = this.#size++;
    let value: Json = null;
    if (isMap(node)) value = this.#map(node, depth);
    else if (isSeq(node)) value = node.items.map((item) => this.build(item, depth + 1));
    else if (isScalar(node)) value = this.#scalar(node);
    const anchor = isNode(node) ? node.anchor : undefined;
    if (anchor !== undefined) this.#anchors.set(anchor, { value, size: this.#size - before });
    return value;
  }

  #alias(node: Alias): Json {
    const known = this.#anchors.get(node.source);
    if (known === undefined) {
      // An anchor is recorded only once its value is complete, so a recursive alias is rejected here as well.
      this.#problem(node, `unknown alias *${node.source}: no anchor &${node.source} ends before it`);
      return null;
    }
    this.#size += known.size;
    this.#aliased += known.size;
    if (this.#aliased <= MAX_ALIASED_VALUES) return known.value;
    // The values are shared, so nothing has grown yet; serializing them would expand them.
    if (this.#aliased - known.size <= MAX_ALIASED_VALUES) {
      this.#problem(node, `aliases expand to more than ${MAX_ALIASED_VALUES} values`);
    }
    return null;
  }

  #map(node: YAMLMap, depth: number): Json {
    const built: Record<string, Json | undefined> = {};
    const seen = new Set<string>();
    for (const pair of node.items) {
      if (isMergeKey(pair)) {
        this.#merge(built, pair.value, depth);
        continue;
      }
      const key = this.#key(pair.key);
      const value = this.build(pair.value, depth + 1);
      if (key === undefined) continue;
      if (seen.has(key)) this.#problem(pair.key, `duplicate key ${JSON.stringify(key)}`);
      seen.add(key);
      setOwn(built, key, value);
    }
    return built;
  }

  /**
   * go-yaml 2 merges at the position of the `<<`, so it overwrites keys above it and is overwritten by keys below it;
   * of several sources the first wins. YAML's own rule, that a map's own keys always win, differs if `<<` is not the
   * first key.
   */
  #merge(built: Record<string, Json | undefined>, node: unknown, depth: number): void {
    const merged = this.build(node, depth + 1);
    const sources = Array.isArray(merged) ? merged : [merged];
    for (const source of sources.toReversed()) {
      if (!isObject(source)) {
        this.#problem(node, "<< must be a map, an alias of a map, or a list of these");
        return;
      }
      for (const key of Object.keys(source)) setOwn(built, key, source[key] ?? null);
    }
  }

  #key(node: unknown): string | undefined {
    if (isAlias(node)) {
      const value = this.#alias(node);
      if (value !== null && typeof value !== "object") return String(value);
      this.#problem(node, "a key must be a string, a number or a boolean");
      return undefined;
    }
    if (!isScalar(node)) {
      this.#problem(node, "a key must be a string, not a map or a list");
      return undefined;
    }
    const text = String(node.value ?? "");
    const key = node.type === Scalar.PLAIN && node.tag === undefined ? keyText(plainScalar(text)) : text;
    if (key === undefined) this.#problem(node, "a key can't be null", "put it in quotes");
    if (node.anchor !== undefined) this.#anchors.set(node.anchor, { value: key ?? null, size: 1 });
    return key;
  }

  #scalar(node: Scalar): Json {
    const text = String(node.value ?? "");
    let value: Json | undefined;
    if (node.tag !== undefined) value = taggedScalar(node.tag, text);
    else if (node.type === Scalar.PLAIN) value = plainScalar(text).value;
    else return text;
    if (value === undefined) {
      this.#problem(node, `${JSON.stringify(text.slice(0, 60))} does not match its tag`);
      return null;
    }
    if (typeof value === "number" && !Number.isFinite(value)) {
      this.#problem(node, `${text} is not a JSON number`, "put it in quotes if it is a string");
      return null;
    }
    return value;
  }

  #problem(node: unknown, message: string, hint?: string): void {
    if (this.problems.length >= MAX_ERRORS) return;
    this.problems.push({ ...spanOf(node), message, ...(hint === undefined ? {} : { hint }) });
  }
}

function isMergeKey(pair: Pair): boolean {
  const { key } = pair;
  return isScalar(key) && key.value === "<<" && key.type === Scalar.PLAIN && key.tag === undefined;
}

function spanOf(node: unknown): Span {
  const range = isNode(node) ? node.range : undefined;
  if (range === undefined || range === null) return { start: 0, end: 1 };
  return { start: range[0], end: range[1] };
}

/** The first character of the content, after blank lines and comments. */
function wholeOf(text: string): ValueSpan {
  const before = /^(?:[ \t]*(?:#[^\n]*)?\r?\n)*[ \t]*/.exec(text)?.[0].length ?? 0;
  const start = /\S/.test(text.charAt(before)) ? before : Math.max(0, text.search(/\S/));
  return { key: undefined, value: { start, end: start + 1 }, exact: false };
}

/** Follows a path through the tree. The position of an alias is its own, not that of its anchor: that is what the user sees. */
function locate(root: unknown, path: Path, text: string): ValueSpan {
  let place: ValueSpan = { ...wholeOf(text), exact: path.length === 0 };
  let node: unknown = root;
  for (const [depth, step] of path.entries()) {
    let key: unknown;
    let next: unknown;
    if (isMap(node)) {
      const pair = node.items.find((item) => stepOf(item.key) === String(step));
      key = pair?.key;
      next = pair?.value;
      if (pair === undefined) return place;
    } else if (isSeq(node) && typeof step === "number" && step < node.items.length) {
      next = node.items[step];
    } else return place;
    const keySpan = key === undefined ? undefined : spanOf(key);
    const value = next === null || next === undefined ? keySpan : spanOf(next);
    place = {
      key: keySpan,
      value: value ?? place.value,
      exact: depth === path.length - 1,
    };
    node = next;
  }
  return place;
}

function stepOf(key: unknown): string | undefined {
  if (!isScalar(key)) return undefined;
  const text = String(key.value ?? "");
  return key.type === Scalar.PLAIN && key.tag === undefined ? keyText(plainScalar(text)) : text;
}
