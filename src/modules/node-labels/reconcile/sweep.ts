import type { Assembly } from "../../../core/evaluate/assembly.ts";
import type { JsonObject } from "../../../core/json.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import type { View } from "../../../core/view/view.ts";
import { sayings } from "../rules/conflicts.ts";
import type { NodeRule } from "../rules/rule.ts";
import type { Policy, RuleIndex } from "../rules/rule-index.ts";
import { needsWork, type Reach, reachOf } from "./touched.ts";

/**
 * One go ends when so many rules were tried, which takes some 20 ms, or so many nodes are to be written: the leader answers admissions
 * between them, and what changes meanwhile does not wait for long behind those nodes.
 */
const TRIES = 20_000;
const FOUND = 100;
/** To find a node takes as long as so many rules; to see whether it is right, with its note, as long as so many. */
const NODE_TRIES = 20;
const WORK_TRIES = 100;

/** What a look at some nodes came to, after policies have changed. */
export interface Seen {
  /** Nodes that are not as they should be. */
  readonly nodes: readonly string[];
  /** Rules whose counts may be others now: they say something else than the policies do, or did, or look at labels of theirs. */
  readonly rules: ReadonlySet<NodeRule>;
  /** Whether there is more to look at. */
  readonly more: boolean;
}

interface Round {
  readonly reach: Reach;
  /** Whether every node is looked at, whoever means it. */
  readonly everyNode: boolean;
  /** By name, as they were when it began: who comes later is looked at anyway. */
  readonly names: readonly string[];
  next: number;
  /** Rules that were named in this round: once is enough. */
  readonly told: Set<NodeRule>;
}

/** Goes round all nodes, some at a time, for all policies that have changed: those that change meanwhile wait for the next round. */
export class Sweep {
  #round: Round | undefined;
  readonly #waiting = new Set<Policy>();

  /** Looks at the first nodes that changed policies can concern. */
  look(view: View, book: RuleIndex, states: readonly (Policy | undefined)[]): Seen {
    const changed = states.filter((state) => state !== undefined);
    if (changed.length === 0) return { nodes: [], rules: new Set(), more: false };
    const round = roundOf(reachOf(book, changed), view);
    let seen: Seen = { nodes: [], rules: new Set(), more: true };
    // Whole names are looked at here and now, whatever else is under way.
    if (this.#round === undefined || round.reach.names !== undefined) seen = step(round, view, book);
    if (seen.more && this.#round !== undefined) for (const state of changed) this.#waiting.add(state);
    else if (seen.more) this.#round = round;
    return { ...seen, rules: round.reach.dependents.intersection(book.rules).union(seen.rules) };
  }

  /** Looks at the next ones. */
  goOn(view: View, book: RuleIndex): Seen {
    if (this.#round === undefined) return { nodes: [], rules: new Set(), more: false };
    const seen = step(this.#round, view, book);
    if (seen.more) return seen;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    this.#round = waiting.length === 0 ? undefined : roundOf(reachOf(book, waiting), view);
    return { ...seen, more: this.#round !== undefined };
  }

  /** Whoever begins to lead looks at every node, and so at all that anybody was looking for. */
  begin(view: View, book: RuleIndex): Seen {
    this.#waiting.clear();
    this.#round = { ...roundOf(reachOf(book, []), view), everyNode: true, names: namesIn(view) };
    return this.goOn(view, book);
  }
}

const sweeps = new WeakMap<Assembly, Sweep>();

export function sweepOf(assembly: Assembly): Sweep {
  const sweep = sweeps.get(assembly) ?? new Sweep();
  sweeps.set(assembly, sweep);
  return sweep;
}

function roundOf(reach: Reach, view: View): Round {
  const names = reach.names ?? namesIn(view);
  return { reach, everyNode: false, names, next: 0, told: new Set() };
}

function namesIn(view: View): string[] {
  return [...view.list("nodes")].map(nameOf);
}

function step(round: Round, view: View, book: RuleIndex): Seen {
  const { reach, names } = round;
  const nodes: string[] = [];
  const rules = new Set<NodeRule>();
  for (let tries = 0; round.next < names.length && tries < TRIES && nodes.length < FOUND; ) {
    const name = names[round.next++] ?? "";
    const node = view.get("nodes", "", name);
    tries += NODE_TRIES + reach.rules.tries(name);
    if (node === undefined || !(round.everyNode || reach.concerns(node))) continue;
    tries += WORK_TRIES + book.tries(name) + quarrels(round, book, node, rules);
    if (needsWork(node, book)) nodes.push(name);
  }
  return { nodes, rules, more: round.next < names.length };
}

/** Names the rules that say something else on a node than those that have changed. Says how many rules it looked at. */
function quarrels({ reach, told }: Round, book: RuleIndex, node: JsonObject, found: Set<NodeRule>): number {
  const name = nameOf(node);
  const changed = reach.rules.named(name);
  if (changed.size === 0) return 0;
  const labels = labelsOf(node);
  const others = book.meaning(name, labels);
  const said = saidBy(others.filter((other) => !told.has(other)));
  for (const rule of changed) {
    // What these see may just have changed, so they may have meant it.
    if (!reach.dependents.has(rule) && !book.selects(rule, labels)) continue;
    for (const [key, value] of sayings(rule))
      for (const [another, rules] of said.get(key) ?? [])
        if (another !== value) for (const other of rules) if (other.id !== rule.id) found.add(other);
  }
  for (const rule of found) told.add(rule);
  return changed.size + others.length;
}

/** Who says what of each key. Compared by that, not one by one: hundreds of rules may change that mean every node. */
function saidBy(rules: readonly NodeRule[]): Map<string, Map<string, NodeRule[]>> {
  const said = new Map<string, Map<string, NodeRule[]>>();
  for (const rule of rules) {
    for (const [key, value] of sayings(rule)) {
      const values = said.get(key) ?? new Map<string, NodeRule[]>();
      said.set(key, values);
      const same = values.get(value);
      if (same === undefined) values.set(value, [rule]);
      else same.push(rule);
    }
  }
  return said;
}
