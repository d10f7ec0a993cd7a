import { RE2JS } from "re2js";
import { type Scanned, scan } from "./pattern-cost.ts";

/**
 * A list of whole node names fits; the engine takes at most some 60 ms for the first match of a program of this size,
 * and microseconds for later ones. `(\pL{1,100}){1,10}` has 2,021 steps and took 90 ms.
 */
export const PATTERN_LENGTH = 1_024;
const PROGRAM_STEPS = 1_100;
/** More expensive patterns are not even compiled: `\pL{1,999}` a hundred times has 1,000 characters and took a second. */
const MOST_STEPS = 4_096;

/** A user's pattern, in Go's syntax (RE2), matched against a whole string: the same for setting, covering and owning. */
export interface NamePattern {
  readonly source: string;
  /** The prefix of every matching string, for an index. May be empty. */
  readonly prefix: string;
  readonly matches: (text: string) => boolean;
}

/** The problem of a pattern, and its character position from 0, if known. */
export interface PatternProblem {
  readonly message: string;
  readonly position: number | undefined;
}

type Read = NamePattern | PatternProblem;

/**
 * Parses a pattern. It is never concatenated with anchors: `a|b` between `^` and `$` would mean "begins with a or ends
 * with b". The engine matches the whole string instead, which is equivalent to grouping and anchoring.
 */
export function readPattern(source: string): Read {
  if (source.length > PATTERN_LENGTH)
    return {
      message: `is longer than ${PATTERN_LENGTH} characters; write several patterns`,
      position: PATTERN_LENGTH,
    };
  const prefix = literalPrefix(source);
  // A literal name needs no program.
  if (prefix === source && isPlain(source)) return { source, prefix, matches: (text) => text === source };
  const scanned = scan(source);
  if (scanned.steps > MOST_STEPS) return TOO_LARGE;
  const compiled = compile(source);
  if ("error" in compiled) return { message: compiled.error, position: placeOf(source, compiled, scanned) };
  if (compiled.programSize() > PROGRAM_STEPS) return TOO_LARGE;
  return new CompiledPattern(source, prefix, compiled);
}

/** The cost of parsing and using a pattern. */
export function stepsOf(source: string): number {
  return source.length > PATTERN_LENGTH || isPlain(source) ? 0 : scan(source).steps;
}

const TOO_LARGE: PatternProblem = {
  message: "is too large once its repetitions are written out; use smaller counts",
  position: 0,
};

/** Compiles on first use: most of ten thousand patterns are never tried, because prefix or suffix rule them out. */
class CompiledPattern implements NamePattern {
  readonly source: string;
  readonly prefix: string;
  readonly #suffix: string;
  #compiled: RE2JS | undefined;

  constructor(source: string, prefix: string, compiled: RE2JS) {
    this.source = source;
    this.prefix = prefix;
    this.#suffix = literalSuffix(source);
    // Without prefix and suffix it is tried on every name.
    if (prefix === "" && this.#suffix === "") this.#compiled = compiled;
  }

  matches(text: string): boolean {
    if (!text.startsWith(this.prefix) || !text.endsWith(this.#suffix)) return false;
    this.#compiled ??= RE2JS.compile(this.source);
    return this.#compiled.testExact(text);
  }
}

interface Failure {
  readonly error: string;
  /** The part that the engine rejects. */
  readonly near: string | undefined;
}

function compile(source: string): RE2JS | Failure {
  try {
    return RE2JS.compile(source);
  } catch (error) {
    // The engine's errors carry a short sentence and the part of the pattern that it is about.
    const { error: reason, input } = error as { error?: unknown; input?: unknown };
    return {
      error: typeof reason === "string" ? reason : "is not a regular expression in Go's syntax (RE2)",
      near: typeof input === "string" ? input : undefined,
    };
  }
}

/** The position of the error, as far as the engine's message and the brackets show. Trying prefixes took seconds. */
function placeOf(source: string, { error, near }: Failure, scanned: Scanned): number | undefined {
  if (error.includes("missing closing )")) return scanned.unclosed;
  if (error.includes("unexpected )")) return scanned.unopened;
  if (error.includes("trailing backslash")) return source.length - 1;
  if (near === undefined) return undefined;
  // An unclosed item extends to the end.
  if (error.includes("missing closing ]")) return source.length - near.length;
  const first = source.indexOf(near);
  return first >= 0 && first === source.lastIndexOf(near) ? first : undefined;
}

const SPECIAL = /[\\^$.|?*+()[\]{}]/;

function isPlain(source: string): boolean {
  return !SPECIAL.test(source);
}

/**
 * Items that make adjacent plain characters uncertain: a choice, and a flag group or quote, which may be empty, so that
 * a repetition behind it repeats the character before it: `ab(?i)?`, `ab\Q\E*`.
 */
const UNCERTAIN = /\||\(\?|\\Q/;

/** The prefix of each match, as far as plain characters determine it. */
export function literalPrefix(source: string): string {
  if (UNCERTAIN.test(source)) return "";
  let prefix = "";
  let at = source.startsWith("^") ? 1 : 0;
  while (at < source.length) {
    const escaped = source[at] === "\\";
    const character = source[escaped ? at + 1 : at] ?? "";
    if (character === "" || (escaped ? !/[-.]/.test(character) : SPECIAL.test(character))) break;
    // Half of a surrogate pair is not a character: a repetition repeats the whole.
    if (character > "\u007f") break;
    const next = source[at + (escaped ? 2 : 1)];
    if (next === "*" || next === "?" || next === "{") break;
    prefix += character;
    at += escaped ? 2 : 1;
    // Repeated: only the first is certain.
    if (next === "+") break;
  }
  return prefix;
}

/** Letters, digits, dashes and escaped dots at the very end. */
const TAIL = /(?:[A-Za-z0-9-]|\\[.-])+(?=\$?$)/;

/** The suffix of each match, as far as plain characters determine it: empty if an escape reaches into it. */
function literalSuffix(source: string): string {
  if (UNCERTAIN.test(source)) return "";
  const tail = TAIL.exec(source);
  if (tail === null || source[tail.index - 1] === "\\") return "";
  return tail[0].replaceAll("\\", "");
}
