import { type JsonObject, own } from "../../../core/json.ts";
import { matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { Evaluator } from "../../../core/module/module.ts";
import type { Settings } from "../settings.ts";
import { type Ownership, owns } from "./ownership.ts";
import { compareRules, meansName, type NodeRule } from "./rule.ts";

export type Policy = NodeRule | Ownership;

/**
 * All rules and ownerships, indexed. A rule is filed under what the names that it means begin with, so that a node is tried against
 * the few rules that may mean it, and not against ten thousand.
 */
export class RuleIndex {
  readonly settings: Settings;
  readonly rules = new Set<NodeRule>();
  readonly ownerships = new Set<Ownership>();
  /** Rules whose keys are covered on every node, because it can't be known which they mean. */
  readonly unclear = new Set<NodeRule>();
  /** Rules that look at labels. */
  readonly selecting = new Set<NodeRule>();
  /** When the nodes of a rule were last counted, by its id; forgotten when it changes. */
  readonly counted = new Map<string, number>();
  readonly #byPrefix = new Map<string, Set<NodeRule>>();
  readonly #byKey = new Map<string, Set<NodeRule>>();
  /** How long the prefixes are, and how many of each: a name has only so many beginnings worth looking up. */
  readonly #lengths = new Map<number, number>();

  constructor(policies: Iterable<Policy>, settings: Settings) {
    this.settings = settings;
    for (const policy of policies) this.add(policy);
  }

  /** Where rules are confined to one namespace, all others are as if they were not there. */
  counts({ ref }: Policy): boolean {
    return this.settings.namespace === undefined || ref.namespace === this.settings.namespace;
  }

  add(policy: Policy): void {
    if (!this.counts(policy)) return;
    if (policy.kind === "ownership") {
      this.ownerships.add(policy);
      return;
    }
    this.rules.add(policy);
    if (policy.coversEveryNode) this.unclear.add(policy);
    if (policy.selector !== undefined) this.selecting.add(policy);
    for (const key of policy.labels.keys()) file(this.#byKey, key, policy);
    for (const prefix of prefixesOf(policy)) {
      if (!this.#byPrefix.has(prefix)) this.#count(prefix.length, 1);
      file(this.#byPrefix, prefix, policy);
    }
  }

  remove(policy: Policy): void {
    if (policy.kind === "ownership") {
      this.ownerships.delete(policy);
      return;
    }
    if (!this.rules.delete(policy)) return;
    this.counted.delete(policy.id);
    this.unclear.delete(policy);
    this.selecting.delete(policy);
    for (const key of policy.labels.keys()) drop(this.#byKey, key, policy);
    for (const prefix of prefixesOf(policy)) {
      drop(this.#byPrefix, prefix, policy);
      if (!this.#byPrefix.has(prefix)) this.#count(prefix.length, -1);
    }
  }

  sets(key: string): boolean {
    return this.#byKey.has(key);
  }

  /** The rules that may mean a node of this name, in no order. */
  named(name: string): Set<NodeRule> {
    const found = new Set<NodeRule>();
    for (const length of this.#lengths.keys()) {
      if (length > name.length) continue;
      for (const rule of this.#byPrefix.get(name.slice(0, length)) ?? [])
        if (!found.has(rule) && meansName(rule, name)) found.add(rule);
    }
    return found;
  }

  /** How many rules have to be tried for a name. */
  tries(name: string): number {
    let tries = 0;
    for (const length of this.#lengths.keys())
      if (length <= name.length) tries += this.#byPrefix.get(name.slice(0, length))?.size ?? 0;
    return tries;
  }

  /** The rules that mean a node, in the order in which they speak. */
  meaning(name: string, labels: JsonObject | undefined): NodeRule[] {
    const found: NodeRule[] = [];
    for (const rule of this.named(name)) if (this.selects(rule, labels)) found.push(rule);
    return found.length > 1 ? found.sort(compareRules) : found;
  }

  means(rule: NodeRule, name: string, labels: JsonObject | undefined): boolean {
    return meansName(rule, name) && this.selects(rule, labels);
  }

  /**
   * Whether the labels fit. Labels that any rule sets are not seen, as if they were not there: else what a rule means would hang
   * on what another wrote, and on which of them was first. Nor are owned ones: those that no rule sets are on their way out.
   */
  selects({ selector }: NodeRule, labels: JsonObject | undefined): boolean {
    if (selector === undefined) return true;
    if (selector.kind !== "requirements" || labels === undefined) return matches(selector, labels);
    const seen: Record<string, string> = {};
    for (const { key } of selector.requirements) {
      const value = own(labels, key);
      if (typeof value === "string" && !this.sets(key) && !this.#owned(key)) seen[key] = value;
    }
    return matches(selector, seen);
  }

  #owned(key: string): boolean {
    for (const ownership of this.ownerships) if (owns(ownership, key)) return true;
    return false;
  }

  #count(length: number, step: number): void {
    const count = (this.#lengths.get(length) ?? 0) + step;
    if (count === 0) this.#lengths.delete(length);
    else this.#lengths.set(length, count);
  }
}

/** Where a rule is filed; one that goes by labels alone may mean a node of any name. */
function prefixesOf({ patterns, selector }: NodeRule): Set<string> {
  if (patterns.length === 0) return new Set(selector === undefined ? [] : [""]);
  return new Set(patterns.map(({ prefix }) => prefix));
}

function file(sets: Map<string, Set<NodeRule>>, value: string, rule: NodeRule): void {
  const set = sets.get(value);
  if (set === undefined) sets.set(value, new Set([rule]));
  else set.add(rule);
}

function drop(sets: Map<string, Set<NodeRule>>, value: string, rule: NodeRule): void {
  const set = sets.get(value);
  if (set?.delete(rule) && set.size === 0) sets.delete(value);
}

const books = new WeakMap<Evaluator, RuleIndex>();

/** Whoever has the evaluator has the book that it answers from: what is indexed for admissions serves plans as well. */
export function attachIndex<E extends Evaluator<Policy>>(evaluator: E, book: RuleIndex): E {
  books.set(evaluator as Evaluator, book);
  return evaluator;
}

export function ruleIndexOf(evaluator: Evaluator | undefined): RuleIndex | undefined {
  return evaluator === undefined ? undefined : books.get(evaluator);
}
