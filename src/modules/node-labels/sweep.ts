import type { JsonObject } from "../../core/json.ts";
import { labelsOf, nameOf } from "../../core/kubernetes/object.ts";
import type { View } from "../../core/view.ts";
import type { Policy, RuleBook } from "./book.ts";
import { quarrelsOf } from "./conflicts.ts";
import type { NodeRule } from "./rule.ts";
import { needsWork, reachOf } from "./touched.ts";

/** So many nodes are looked at in one go, which takes a few milliseconds: the leader answers admissions between them. */
const STEP = 500;

/** What a look at some nodes came to, after a policy has changed. */
export interface Seen {
  /** Nodes that are not as they should be. */
  readonly nodes: readonly string[];
  /** Rules that say something else than the policy does, or did, on these nodes. */
  readonly rules: ReadonlySet<NodeRule>;
  /** The sweep that looks at the rest. */
  readonly rest?: string;
}

interface Sweep {
  readonly states: readonly (Policy | undefined)[];
  /** By name, as they were when it began: who comes later is looked at anyway. */
  readonly names: readonly string[];
  next: number;
}

const sweeps = new Map<string, Sweep>();
let begun = 0;

/** Looks at the first nodes that a changed policy can concern, and begins a sweep where there are more. */
export function look(view: View, book: RuleBook, states: readonly (Policy | undefined)[]): Seen {
  if (states.every((state) => state === undefined)) return { nodes: [], rules: new Set() };
  const names = reachOf(book, states).names ?? [...view.list("nodes")].map(nameOf);
  const id = `${begun++}`;
  sweeps.set(id, { states, names, next: 0 });
  return goOn(id, view, book);
}

/** Looks at the next ones. A sweep that nobody knows any more has nothing left. */
export function goOn(id: string, view: View, book: RuleBook): Seen {
  const sweep = sweeps.get(id);
  if (sweep === undefined) return { nodes: [], rules: new Set() };
  const { states, names, next } = sweep;
  const { concerns } = reachOf(book, states);
  const nodes: JsonObject[] = [];
  for (const name of names.slice(next, next + STEP)) {
    const node = view.get("nodes", "", name);
    if (node !== undefined && concerns(node)) nodes.push(node);
  }
  const seen: Seen = {
    nodes: nodes.filter((node) => needsWork(node, book)).map(nameOf),
    rules: quarrelling(states, book, nodes),
  };
  sweep.next = next + STEP;
  if (sweep.next < names.length) return { ...seen, rest: id };
  sweeps.delete(id);
  return seen;
}

/** Whoever begins to lead looks at everything. */
export function forgetSweeps(): void {
  sweeps.clear();
}

function quarrelling(
  states: readonly (Policy | undefined)[],
  book: RuleBook,
  nodes: readonly JsonObject[],
): Set<NodeRule> {
  const found = new Set<NodeRule>();
  for (const state of states) {
    if (state?.kind !== "rule") continue;
    const meant = nodes.filter((node) => book.means(state, nameOf(node), labelsOf(node)));
    for (const { other } of quarrelsOf(state, book, meant)) found.add(other);
  }
  return found;
}
