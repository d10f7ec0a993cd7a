import { literalPrefix, readPattern } from "../rules/pattern.ts";
import type { NodeRule, RuledTaint } from "../rules/rule.ts";

/** The taints that rules have set so far, and on which nodes. */
export interface TaintLedger {
  readonly includes: (taint: RuledTaint, node: string) => boolean;
}

/** A rule without patterns may match a node of any name. */
const ANY = ".*";

/** `dedicated=edge:NoSchedule "edge-.*"`: a taint, and a name pattern of the rule that sets it. */
function lineOf({ key, value, effect }: RuledTaint, pattern: string): string {
  return `${key}=${value}:${effect} ${JSON.stringify(pattern)}`;
}

/** A line for each taint of a rule and each of its patterns. */
export function linesOf({ taints, patterns }: NodeRule): string[] {
  const names = patterns.length === 0 ? [ANY] : patterns.map(({ source }) => source);
  return taints.flatMap((taint) => names.map((name) => lineOf(taint, name)));
}

/** The taints that rules have set so far, each with the name patterns of those rules. */
export class LedgerLines implements TaintLedger {
  readonly lines: ReadonlySet<string>;
  /** The patterns of each taint, in JSON. */
  readonly #names = new Map<string, string[]>();
  /** The patterns that were needed so far: each is compiled once, for all nodes. */
  readonly #patterns = new Map<string, ReturnType<typeof readPattern>>();

  /** A line without a pattern is dropped: it might be any node's. */
  constructor(lines: Iterable<string>) {
    this.lines = new Set([...lines].filter((line) => line.includes(" ")));
    for (const line of this.lines) {
      // No part of a taint contains a space.
      const space = line.indexOf(" ");
      const taint = line.slice(0, space);
      const names = this.#names.get(taint);
      if (names === undefined) this.#names.set(taint, [line.slice(space + 1)]);
      else names.push(line.slice(space + 1));
    }
  }

  /** Whether a rule has set the taint on nodes of this name. */
  includes({ key, value, effect }: RuledTaint, node: string): boolean {
    const names = this.#names.get(`${key}=${value}:${effect}`) ?? [];
    return names.some((name) => this.#matches(name, node));
  }

  #matches(json: string, node: string): boolean {
    const source = sourceOf(json);
    // The literal prefix rules out most patterns without compiling them.
    if (source === undefined || !node.startsWith(literalPrefix(source))) return false;
    const read = this.#patterns.get(source) ?? readPattern(source);
    this.#patterns.set(source, read);
    return "matches" in read && read.matches(node);
  }
}

function sourceOf(json: string): string | undefined {
  try {
    const source: unknown = JSON.parse(json);
    return typeof source === "string" ? source : undefined;
  } catch {
    return undefined;
  }
}
