import type { Assembly } from "../../core/module/assembly.ts";
import type { Context, Evaluator } from "../../core/module/module.ts";
import { mutateNode } from "./desired/mutate-node.ts";
import type { RuleIndex, RulePolicy } from "./rules/rule-index.ts";
import { MODULE } from "./settings.ts";

/** Mutates nodes at creation. The reconciler uses the same index, so that both agree and rules are indexed once. */
export class NodeEvaluator implements Evaluator<RulePolicy> {
  readonly index: RuleIndex;

  constructor(index: RuleIndex) {
    this.index = index;
  }

  readonly mutate = (context: Context) => mutateNode(context, this.index);

  readonly update = (removed: readonly RulePolicy[], added: readonly RulePolicy[]): void => {
    for (const policy of removed) this.index.remove(policy);
    for (const policy of added) this.index.add(policy);
  };
}

/** The rules as they are indexed for admission. */
export function ruleIndexOf(assembly: Assembly | undefined): RuleIndex | undefined {
  const evaluator = assembly?.evaluator(MODULE);
  return evaluator instanceof NodeEvaluator ? evaluator.index : undefined;
}
