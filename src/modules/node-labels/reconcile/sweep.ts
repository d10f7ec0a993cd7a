import type { JsonObject } from "../../../core/json.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import type { View } from "../../../core/view/view.ts";
import type { PendingNodes } from "../desired/pending-nodes.ts";
import { entriesOf } from "../rules/conflicts.ts";
import type { NodeRule } from "../rules/rule.ts";
import type { RuleIndex, RulePolicy } from "../rules/rule-index.ts";
import { type PolicyReach, reachOf } from "./policy-reach.ts";

/**
 * One step ends after this many rule trials, which takes some 20 ms, or this many nodes that need work: the leader
 * answers admissions between steps, and later changes do not wait long behind those nodes.
 */
const TRIES = 20_000;
const FOUND = 100;
/** Finding a node takes as long as this many rule trials; comparing it with its desired state, as long as this many. */
const NODE_TRIES = 20;
const WORK_TRIES = 100;

/** The result of one step. */
export interface SweepStep {
  /** Names of nodes that need work. */
  readonly nodes: readonly string[];
  /** Rules whose counts may have changed: they conflict with changed rules, or did, or select by their labels. */
  readonly rules: ReadonlySet<NodeRule>;
  /** Whether nodes are left. */
  readonly more: boolean;
}

/** The inputs of a step. */
export interface SweepContext {
  readonly view: View;
  readonly index: RuleIndex;
  readonly pending: PendingNodes;
}

interface Round {
  readonly reach: PolicyReach;
  /** Whether every node is compared, not only those in reach. */
  readonly everyNode: boolean;
  /** As of its start; nodes that join later are reconciled anyway. */
  readonly names: readonly string[];
  next: number;
  /** Rules that this round has named already. */
  readonly named: Set<NodeRule>;
}

const NOTHING: SweepStep = { nodes: [], rules: new Set(), more: false };

/** Walks all nodes, a step at a time, for all changed policies. Policies that change in the meantime wait for the next round. */
export class Sweep {
  #round: Round | undefined;
  readonly #waiting = new Set<RulePolicy>();

  /** For changed policies, before and after: the first step. */
  policiesChanged(states: readonly (RulePolicy | undefined)[], context: SweepContext): SweepStep {
    const changed = states.filter((state) => state !== undefined);
    if (changed.length === 0) return NOTHING;
    const { index } = context;
    const round = roundOf(reachOf(index, changed), context.view);
    let step: SweepStep = { nodes: [], rules: new Set(), more: true };
    // Rules for whole names do not wait for a round that is under way.
    if (this.#round === undefined || round.reach.names !== undefined) step = stepOf(round, context);
    if (step.more && this.#round !== undefined) for (const state of changed) this.#waiting.add(state);
    else if (step.more) this.#round = round;
    return { ...step, rules: round.reach.dependents.intersection(index.rules).union(step.rules) };
  }

  next(context: SweepContext): SweepStep {
    if (this.#round === undefined) return NOTHING;
    const step = stepOf(this.#round, context);
    if (step.more) return step;
    const waiting = [...this.#waiting];
    this.#waiting.clear();
    this.#round = waiting.length === 0 ? undefined : roundOf(reachOf(context.index, waiting), context.view);
    return { ...step, more: this.#round !== undefined };
  }

  /** Every node, for a new leader: the first step. */
  start(context: SweepContext): SweepStep {
    this.#waiting.clear();
    const { index, view } = context;
    this.#round = { ...roundOf(reachOf(index, []), view), everyNode: true, names: nodeNames(view) };
    return this.next(context);
  }
}

function roundOf(reach: PolicyReach, view: View): Round {
  const names = reach.names ?? nodeNames(view);
  return { reach, everyNode: false, names, next: 0, named: new Set() };
}

function nodeNames(view: View): string[] {
  return [...view.list("nodes")].map(nameOf);
}

function stepOf(round: Round, { view, index, pending }: SweepContext): SweepStep {
  const { reach, names } = round;
  const nodes: string[] = [];
  const rules = new Set<NodeRule>();
  for (let tries = 0; round.next < names.length && tries < TRIES && nodes.length < FOUND; ) {
    const name = names[round.next++] ?? "";
    const node = view.get("nodes", "", name);
    tries += NODE_TRIES + reach.rules.candidates(name);
    if (node === undefined || !(round.everyNode || reach.affects(node))) continue;
    tries += WORK_TRIES + index.candidates(name) + addConflicting(round, index, node, rules);
    if (pending.differenceOf(node, index) !== undefined) nodes.push(name);
  }
  return { nodes, rules, more: round.next < names.length };
}

/** Adds the rules that conflict with changed rules on a node. Returns how many rules it tried. */
function addConflicting(
  { reach, named }: Round,
  index: RuleIndex,
  node: JsonObject,
  found: Set<NodeRule>,
): number {
  const name = nameOf(node);
  const changed = reach.rules.matchingName(name);
  if (changed.size === 0) return 0;
  const labels = labelsOf(node);
  const others = index.matching(name, labels);
  const byEntry = rulesByEntry(others.filter((other) => !named.has(other)));
  for (const rule of changed) {
    // The labels that a dependent rule sees may just have changed, so it may have matched before.
    if (!reach.dependents.has(rule) && !index.selects(rule, labels)) continue;
    for (const [key, value] of entriesOf(rule))
      for (const [another, rules] of byEntry.get(key) ?? [])
        if (another !== value) for (const other of rules) if (other.id !== rule.id) found.add(other);
  }
  for (const rule of found) named.add(rule);
  return changed.size + others.length;
}

/** Rules by key and value. Comparing each pair would take too long: hundreds of changed rules may match every node. */
function rulesByEntry(rules: readonly NodeRule[]): Map<string, Map<string, NodeRule[]>> {
  const byKey = new Map<string, Map<string, NodeRule[]>>();
  for (const rule of rules) {
    for (const [key, value] of entriesOf(rule)) {
      const byValue = byKey.get(key) ?? new Map<string, NodeRule[]>();
      byKey.set(key, byValue);
      const same = byValue.get(value);
      if (same === undefined) byValue.set(value, [rule]);
      else same.push(rule);
    }
  }
  return byKey;
}
