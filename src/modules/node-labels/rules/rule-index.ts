import { type JsonObject, own } from "../../../core/json.ts";
import { matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { NodeLabelsSettings } from "../settings.ts";
import { type Ownership, owns } from "./ownership.ts";
import { compareRules, type NodeRule } from "./rule.ts";
import { matchesName } from "./rule-patterns.ts";

export type RulePolicy = NodeRule | Ownership;

/**
 * All rules and ownerships, indexed. A rule is indexed by the literal prefixes of its name patterns, so that a node is
 * tried against the few rules that may match it, and not against ten thousand. Equal policies give an equal index, in
 * any order of changes.
 */
export class RuleIndex {
  readonly settings: NodeLabelsSettings;
  readonly rules = new Set<NodeRule>();
  readonly ownerships = new Set<Ownership>();
  /** Rules with an invalid pattern or selector: which nodes they match is unknown, so their keys are covered on every node. */
  readonly unclear = new Set<NodeRule>();
  /** Rules with a nodeSelector. */
  readonly withSelector = new Set<NodeRule>();
  readonly #byPrefix = new Map<string, Set<NodeRule>>();
  readonly #byKey = new Map<string, Set<NodeRule>>();
  /** The number of prefixes of each length: only these prefixes of a name need to be looked up. */
  readonly #lengths = new Map<number, number>();

  #version = 0;

  constructor(policies: Iterable<RulePolicy>, settings: NodeLabelsSettings) {
    this.settings = settings;
    for (const policy of policies) this.add(policy);
  }

  /** Grows with every change. */
  get version(): number {
    return this.#version;
  }

  /** False for policies outside of the one namespace that the configuration allows. */
  inScope({ ref }: RulePolicy): boolean {
    return this.settings.namespace === undefined || ref.namespace === this.settings.namespace;
  }

  add(policy: RulePolicy): void {
    if (!this.inScope(policy)) return;
    this.#version++;
    if (policy.kind === "ownership") {
      this.ownerships.add(policy);
      return;
    }
    this.rules.add(policy);
    if (policy.coversEveryNode) this.unclear.add(policy);
    if (policy.selector !== undefined) this.withSelector.add(policy);
    for (const key of policy.labels.keys()) file(this.#byKey, key, policy);
    for (const prefix of prefixesOf(policy)) {
      if (!this.#byPrefix.has(prefix)) this.#count(prefix.length, 1);
      file(this.#byPrefix, prefix, policy);
    }
  }

  remove(policy: RulePolicy): void {
    this.#version++;
    if (policy.kind === "ownership") {
      this.ownerships.delete(policy);
      return;
    }
    if (!this.rules.delete(policy)) return;
    this.unclear.delete(policy);
    this.withSelector.delete(policy);
    for (const key of policy.labels.keys()) drop(this.#byKey, key, policy);
    for (const prefix of prefixesOf(policy)) {
      drop(this.#byPrefix, prefix, policy);
      if (!this.#byPrefix.has(prefix)) this.#count(prefix.length, -1);
    }
  }

  setsLabel(key: string): boolean {
    return this.#byKey.has(key);
  }

  /** The rules that match the name, in no order; their selectors are not checked. */
  matchingName(name: string): Set<NodeRule> {
    const found = new Set<NodeRule>();
    for (const length of this.#lengths.keys()) {
      if (length > name.length) continue;
      for (const rule of this.#byPrefix.get(name.slice(0, length)) ?? [])
        if (!found.has(rule) && matchesName(rule, name)) found.add(rule);
    }
    return found;
  }

  /** How many rules must be tried for a name. */
  candidates(name: string): number {
    let count = 0;
    for (const length of this.#lengths.keys())
      if (length <= name.length) count += this.#byPrefix.get(name.slice(0, length))?.size ?? 0;
    return count;
  }

  /** The rules that match a node, by precedence. */
  matching(name: string, labels: JsonObject | undefined): NodeRule[] {
    const found: NodeRule[] = [];
    for (const rule of this.matchingName(name)) if (this.selects(rule, labels)) found.push(rule);
    return found.length > 1 ? found.sort(compareRules) : found;
  }

  matches(rule: NodeRule, name: string, labels: JsonObject | undefined): boolean {
    return matchesName(rule, name) && this.selects(rule, labels);
  }

  /**
   * Whether the nodeSelector matches. Labels that any rule sets count as absent: otherwise a rule's match would depend
   * on another rule's values, and on their order. So do owned labels: those that no rule sets are about to be removed.
   */
  selects({ selector }: NodeRule, labels: JsonObject | undefined): boolean {
    if (selector === undefined) return true;
    if (selector.kind !== "requirements" || labels === undefined) return matches(selector, labels);
    const seen: Record<string, string> = {};
    for (const { key } of selector.requirements) {
      const value = own(labels, key);
      if (typeof value === "string" && !this.setsLabel(key) && !this.#owned(key)) seen[key] = value;
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

/** The prefixes of a rule; a rule without patterns may match a node of any name. */
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
