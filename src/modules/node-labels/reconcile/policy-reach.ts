import { equal, type JsonObject } from "../../../core/json.ts";
import { annotationsOf, isBeingDeleted, labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import type { Change } from "../../../core/view/view.ts";
import { ACKNOWLEDGE, type Ownership, owns } from "../rules/ownership.ts";
import type { NodeRule } from "../rules/rule.ts";
import { RuleIndex, type RulePolicy } from "../rules/rule-index.ts";

/** Whether a changed policy is equivalent to the previous one: its status, labels and finalizers affect no node. */
export function isUnchanged({ before, object }: Change): boolean {
  if (before === undefined || object === undefined) return false;
  return (
    equal(before["spec"], object["spec"]) &&
    annotationsOf(before)?.[ACKNOWLEDGE] === annotationsOf(object)?.[ACKNOWLEDGE] &&
    isBeingDeleted(before) === isBeingDeleted(object)
  );
}

/** The nodes and rules that changed policies can affect. */
export interface PolicyReach {
  /** Only these nodes, if every pattern is a whole name; `undefined`: any node. */
  readonly names: readonly string[] | undefined;
  /** Rules whose nodeSelector names a label that the policies set or own, or did. */
  readonly dependents: ReadonlySet<NodeRule>;
  /** The changed rules and the dependents, indexed. */
  readonly rules: RuleIndex;
  readonly affects: (node: JsonObject) => boolean;
}

/** `states` are the policies before and after their changes. */
export function reachOf(index: RuleIndex, states: readonly RulePolicy[]): PolicyReach {
  const rules = states.filter((state) => state.kind === "rule");
  const ownerships = states.filter((state) => state.kind === "ownership");
  const dependents = dependentsOf(index, rules, ownerships);
  const patterns = rules.flatMap((rule) => rule.patterns);
  const wholeNames =
    ownerships.length === 0 &&
    dependents.size === 0 &&
    rules.every((rule) => rule.patterns.length > 0 && !rule.coversEveryNode) &&
    patterns.every(({ prefix, source }) => prefix === source);
  const indexed = new RuleIndex([...rules, ...dependents], index.settings);
  const everyNode = rules.some((rule) => rule.coversEveryNode);
  return {
    names: wholeNames ? [...new Set(patterns.map(({ source }) => source))] : undefined,
    dependents,
    rules: indexed,
    affects: (node) =>
      everyNode ||
      indexed.matchingName(nameOf(node)).size > 0 ||
      ownerships.some((ownership) => ownsAny(ownership, node)),
  };
}

function dependentsOf(
  index: RuleIndex,
  rules: readonly NodeRule[],
  ownerships: readonly Ownership[],
): Set<NodeRule> {
  const keys = new Set(rules.flatMap((rule) => [...rule.labels.keys()]));
  const found = new Set<NodeRule>();
  for (const rule of [...index.withSelector, ...rules]) {
    if (rule.selector?.kind !== "requirements") continue;
    const changed = ({ key }: { readonly key: string }) =>
      keys.has(key) || ownerships.some((ownership) => owns(ownership, key));
    if (rule.selector.requirements.some(changed)) found.add(rule);
  }
  return found;
}

function ownsAny(ownership: Ownership, node: JsonObject): boolean {
  return Object.keys(labelsOf(node) ?? {}).some((key) => owns(ownership, key));
}
