import { equal, type JsonObject } from "../../../core/json.ts";
import { annotationsOf, isBeingDeleted, labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import type { Change } from "../../../core/view/view.ts";
import { desiredOf } from "../desired/desired.ts";
import { differenceOf } from "../desired/difference.ts";
import { nodePatch } from "../desired/node-patch.ts";
import { ACKNOWLEDGE } from "../rules/acknowledged.ts";
import { type Ownership, owns } from "../rules/ownership.ts";
import type { NodeRule } from "../rules/rule.ts";
import { type Policy, RuleIndex } from "../rules/rule-index.ts";

/** Whether a policy says the same as before: a status, a label or a finalizer of it concerns no node. */
export function saysTheSame({ before, object }: Change): boolean {
  if (before === undefined || object === undefined) return false;
  return (
    equal(before["spec"], object["spec"]) &&
    annotationsOf(before)?.[ACKNOWLEDGE] === annotationsOf(object)?.[ACKNOWLEDGE] &&
    isBeingDeleted(before) === isBeingDeleted(object)
  );
}

/** What policies can concern that have changed from one state to another. */
export interface Reach {
  /** Where only whole names can be meant, just those; else it may be any. */
  readonly names: readonly string[] | undefined;
  /** Rules that look at labels which the policies set or own, or did. */
  readonly dependents: ReadonlySet<NodeRule>;
  /** The rules among them and those that look at their labels, indexed. */
  readonly rules: RuleIndex;
  readonly concerns: (node: JsonObject) => boolean;
}

export function reachOf(book: RuleIndex, states: readonly Policy[]): Reach {
  const rules = states.filter((state) => state.kind === "rule");
  const ownerships = states.filter((state) => state.kind === "ownership");
  const seen = dependents(book, rules, ownerships);
  const patterns = rules.flatMap((rule) => rule.patterns);
  const whole =
    ownerships.length === 0 &&
    seen.size === 0 &&
    rules.every((rule) => rule.patterns.length > 0 && !rule.coversEveryNode) &&
    patterns.every(({ prefix, source }) => prefix === source);
  const indexed = new RuleIndex([...rules, ...seen], book.settings);
  const unclear = rules.some((rule) => rule.coversEveryNode);
  return {
    names: whole ? [...new Set(patterns.map(({ source }) => source))] : undefined,
    dependents: seen,
    rules: indexed,
    concerns: (node) =>
      unclear ||
      indexed.named(nameOf(node)).size > 0 ||
      ownerships.some((ownership) => ownsAny(ownership, node)),
  };
}

/** Rules that look at a label which one of these sets or owns, or did until now: they may see it now, or no longer. */
function dependents(
  book: RuleIndex,
  rules: readonly NodeRule[],
  ownerships: readonly Ownership[],
): Set<NodeRule> {
  const keys = new Set(rules.flatMap((rule) => [...rule.labels.keys()]));
  const found = new Set<NodeRule>();
  for (const rule of [...book.selecting, ...rules]) {
    if (rule.selector?.kind !== "requirements") continue;
    const touched = ({ key }: { readonly key: string }) =>
      keys.has(key) || ownerships.some((ownership) => owns(ownership, key));
    if (rule.selector.requirements.some(touched)) found.add(rule);
  }
  return found;
}

function ownsAny(ownership: Ownership, node: JsonObject): boolean {
  return Object.keys(labelsOf(node) ?? {}).some((key) => owns(ownership, key));
}

/** Whether there is anything to do to a node, now or later. */
export function needsWork(node: JsonObject, book: RuleIndex): boolean {
  if (isBeingDeleted(node)) return false;
  const difference = differenceOf(node, desiredOf(node, book), book.settings, undefined);
  return difference.asksLedger || nodePatch(node, difference).length > 0;
}
