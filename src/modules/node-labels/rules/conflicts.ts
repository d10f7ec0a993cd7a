import type { JsonObject } from "../../../core/json.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import type { View } from "../../../core/view/view.ts";
import type { Conflict } from "../reconcile/status.ts";
import { compareRules, type NodeRule } from "./rule.ts";
import type { RuleIndex } from "./rule-index.ts";

/** The nodes that a rule matches. */
export function nodesOf(rule: NodeRule, index: RuleIndex, view: View): JsonObject[] {
  const nodes: JsonObject[] = [];
  for (const node of view.list("nodes"))
    if (index.matches(rule, nameOf(node), labelsOf(node))) nodes.push(node);
  return nodes;
}

/**
 * Keys that other rules set to different values on nodes of this rule, the most nodes first. Compared node by node: ten thousand rules may
 * set one key, each on nodes of its own, without any conflict.
 */
export function conflictsOf(rule: NodeRule, index: RuleIndex, nodes: readonly JsonObject[]): Conflict[] {
  const conflicts = new Map<string, { -readonly [Field in keyof Conflict]: Conflict[Field] }>();
  const differences = new Map<NodeRule, readonly string[]>();
  for (const node of nodes) {
    for (const other of index.matching(nameOf(node), labelsOf(node))) {
      if (other.id === rule.id) continue;
      const keys = differences.get(other) ?? differingKeys(rule, other);
      differences.set(other, keys);
      for (const key of keys) {
        const id = `${other.id} ${key}`;
        const wins = compareRules(rule, other) < 0;
        const conflict = conflicts.get(id) ?? { key, with: other.id, wins, nodes: 0 };
        conflict.nodes++;
        conflicts.set(id, conflict);
      }
    }
  }
  return [...conflicts.values()].sort(
    (a, b) => b.nodes - a.nodes || (`${a.key} ${a.with}` < `${b.key} ${b.with}` ? -1 : 1),
  );
}

function differingKeys(rule: NodeRule, other: NodeRule): string[] {
  const entries = new Map(entriesOf(other));
  const keys: string[] = [];
  for (const [key, value] of entriesOf(rule))
    if (entries.has(key) && entries.get(key) !== value) keys.push(key);
  return keys;
}

/** All keys that a rule sets, as a status names them, with their values. */
export function* entriesOf({
  labels,
  annotations,
  taints,
}: NodeRule): Iterable<[key: string, value: string]> {
  yield* labels;
  for (const [key, value] of annotations) yield [`annotation ${key}`, value];
  for (const { key, effect, value } of taints) yield [`taint ${key}:${effect}`, value];
}
