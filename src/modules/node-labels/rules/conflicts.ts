import type { JsonObject } from "../../../core/json.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { compareText } from "../../../core/order.ts";
import type { View } from "../../../core/view/view.ts";
import { compareRules, type NodeRule } from "./rule.ts";
import type { RuleIndex } from "./rule-index.ts";

/** The nodes that a rule matches. */
export function nodesOf(rule: NodeRule, index: RuleIndex, view: View): JsonObject[] {
  const nodes: JsonObject[] = [];
  for (const node of view.list("nodes"))
    if (index.matches(rule, nameOf(node), labelsOf(node))) nodes.push(node);
  return nodes;
}

/** A key that another rule sets to a different value. */
export interface RuleConflict {
  readonly key: string;
  readonly with: string;
  readonly wins: boolean;
  readonly nodes: number;
}

/**
 * Keys that other rules set to different values on nodes of this rule, the most nodes first. Compared node by node: ten
 * thousand rules may set one key, each on different nodes, without any conflict.
 */
export function conflictsOf(rule: NodeRule, index: RuleIndex, nodes: readonly JsonObject[]): RuleConflict[] {
  const conflicts = new Map<string, { -readonly [Field in keyof RuleConflict]: RuleConflict[Field] }>();
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
    (a, b) => b.nodes - a.nodes || compareText(`${a.key} ${a.with}`, `${b.key} ${b.with}`),
  );
}

/** A key that a rule sets on a node and does not get, because a rule of higher precedence sets another value. */
export interface LostKey {
  readonly rule: NodeRule;
  readonly winner: NodeRule;
  readonly what: "label" | "annotation" | "taint";
  /** Of a taint `key:effect`. */
  readonly key: string;
  readonly value: string;
  readonly winning: string;
}

/** The values that rules lose to others on one node; `rules` are those that match it, by precedence. */
export function lostKeysOf(rules: readonly NodeRule[]): LostKey[] {
  if (rules.length < 2) return [];
  const first = new Map<string, { readonly winner: NodeRule; readonly winning: string }>();
  const lost: LostKey[] = [];
  for (const rule of rules) {
    for (const { what, key, value } of keysOf(rule)) {
      const before = first.get(`${what} ${key}`);
      if (before === undefined) first.set(`${what} ${key}`, { winner: rule, winning: value });
      else if (before.winning !== value) lost.push({ rule, what, key, value, ...before });
    }
  }
  return lost;
}

function* keysOf({
  labels,
  annotations,
  taints,
}: NodeRule): Iterable<Pick<LostKey, "what" | "key" | "value">> {
  for (const [key, value] of labels) yield { what: "label", key, value };
  for (const [key, value] of annotations) yield { what: "annotation", key, value };
  for (const { key, effect, value } of taints) yield { what: "taint", key: `${key}:${effect}`, value };
}

function differingKeys(rule: NodeRule, other: NodeRule): string[] {
  const entries = new Map(entriesOf(other));
  const keys: string[] = [];
  for (const [key, value] of entriesOf(rule))
    if (entries.has(key) && entries.get(key) !== value) keys.push(key);
  return keys;
}

/** All keys that a rule sets, as a status names them, with their values. */
export function* entriesOf(rule: NodeRule): Iterable<[key: string, value: string]> {
  for (const { what, key, value } of keysOf(rule)) yield [what === "label" ? key : `${what} ${key}`, value];
}
