import type { JsonObject } from "../../../core/json.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import type { View } from "../../../core/view/view.ts";
import type { Conflict } from "../reconcile/status.ts";
import { compareRules, type NodeRule } from "./rule.ts";
import type { RuleIndex } from "./rule-index.ts";

/** The nodes that a rule means. */
export function nodesOf(rule: NodeRule, book: RuleIndex, view: View): JsonObject[] {
  const nodes: JsonObject[] = [];
  for (const node of view.list("nodes")) if (book.means(rule, nameOf(node), labelsOf(node))) nodes.push(node);
  return nodes;
}

interface Quarrel {
  readonly key: string;
  readonly other: NodeRule;
  nodes: number;
}

/**
 * What other rules say otherwise on nodes that this one means too. Looked for node by node: ten thousand rules may set one key, each for
 * nodes of its own, and quarrel about nothing.
 */
export function conflictingRules(rule: NodeRule, book: RuleIndex, nodes: readonly JsonObject[]): Quarrel[] {
  const quarrels = new Map<string, Quarrel>();
  const differences = new Map<NodeRule, readonly string[]>();
  for (const node of nodes) {
    for (const other of book.meaning(nameOf(node), labelsOf(node))) {
      if (other.id === rule.id) continue;
      const keys = differences.get(other) ?? differencesBetween(rule, other);
      differences.set(other, keys);
      for (const key of keys) {
        const id = `${other.id} ${key}`;
        const quarrel = quarrels.get(id) ?? { key, other, nodes: 0 };
        quarrel.nodes++;
        quarrels.set(id, quarrel);
      }
    }
  }
  return [...quarrels.values()];
}

/** The same for a status, the most nodes first. */
export function conflictsOf(rule: NodeRule, book: RuleIndex, nodes: readonly JsonObject[]): Conflict[] {
  return conflictingRules(rule, book, nodes)
    .map(({ key, other, nodes: count }) => ({
      key,
      with: other.id,
      wins: compareRules(rule, other) < 0,
      nodes: count,
    }))
    .sort((a, b) => b.nodes - a.nodes || (`${a.key} ${a.with}` < `${b.key} ${b.with}` ? -1 : 1));
}

function differencesBetween(rule: NodeRule, other: NodeRule): string[] {
  const said = new Map(sayings(other));
  const keys: string[] = [];
  for (const [key, value] of sayings(rule)) if (said.has(key) && said.get(key) !== value) keys.push(key);
  return keys;
}

/** All that a rule sets, as a status names it, and to what. */
export function* sayings({ labels, annotations, taints }: NodeRule): Iterable<[key: string, value: string]> {
  yield* labels;
  for (const [key, value] of annotations) yield [`annotation ${key}`, value];
  for (const { key, effect, value } of taints) yield [`taint ${key}:${effect}`, value];
}
