import { literalPrefix, readPattern } from "../rules/pattern.ts";
import type { NodeRule, RuledTaint } from "../rules/rule.ts";

/** A rule by labels alone may mean a node of any name. */
const ANY = ".*";

/** `dedicated=edge:NoSchedule "edge-.*"`: a taint, and a pattern of the names that it was meant for. */
function lineOf({ key, value, effect }: RuledTaint, pattern: string): string {
  return `${key}=${value}:${effect} ${JSON.stringify(pattern)}`;
}

/** A line for each taint of a rule and each of its patterns. */
export function linesOf({ taints, patterns }: NodeRule): string[] {
  const names = patterns.length === 0 ? [ANY] : patterns.map(({ source }) => source);
  return taints.flatMap((taint) => names.map((name) => lineOf(taint, name)));
}

/** What is written down of taints that rules have set so far. */
export class LedgerLines {
  readonly lines: ReadonlySet<string>;
  /** The patterns of each taint, as they are written. */
  readonly #names = new Map<string, string[]>();

  /** A line without a name vouches for nothing: it might be any node's. */
  constructor(lines: Iterable<string>) {
    this.lines = new Set([...lines].filter((line) => line.includes(" ")));
    for (const line of this.lines) {
      // No part of a taint holds a space.
      const space = line.indexOf(" ");
      const taint = line.slice(0, space);
      const names = this.#names.get(taint);
      if (names === undefined) this.#names.set(taint, [line.slice(space + 1)]);
      else names.push(line.slice(space + 1));
    }
  }

  /** Whether a rule has meant a node of this name to have the taint. */
  vouches({ key, value, effect }: RuledTaint, node: string): boolean {
    const names = this.#names.get(`${key}=${value}:${effect}`) ?? [];
    return names.some((name) => fits(name, node));
  }
}

function fits(written: string, node: string): boolean {
  let source: unknown;
  try {
    source = JSON.parse(written);
  } catch {
    return false;
  }
  // Most are ruled out by how they begin, and need not be compiled.
  if (typeof source !== "string" || !node.startsWith(literalPrefix(source))) return false;
  const read = readPattern(source);
  return "matches" in read && read.matches(node);
}
