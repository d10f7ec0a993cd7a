import { type JsonObject, stringAt } from "../../../core/json.ts";
import { isBeingDeleted } from "../../../core/kubernetes/object.ts";
import { RECORD, recordText } from "../ledger/record.ts";
import type { RuleIndex } from "../rules/rule-index.ts";
import { type Desired, desiredOf } from "./desired.ts";
import { differenceOf, type NodeDifference } from "./difference.ts";

interface PendingNode {
  readonly desired: Desired;
  readonly index: RuleIndex;
  readonly version: number;
  difference?: NodeDifference;
}

/**
 * Nodes that are about to be reconciled, with their desired state and difference, so that each is computed once for the view's copy and
 * once for the stored node. Neither objects nor a version of the index ever change, so the results are the same without it.
 */
export class PendingNodes {
  readonly #nodes = new WeakMap<JsonObject, PendingNode>();

  desiredOf(node: JsonObject, index: RuleIndex): Desired {
    return this.#pending(node, index).desired;
  }

  /** What must change on the view's copy of a node, now or later; nothing where the node needs no work. */
  differenceOf(node: JsonObject, index: RuleIndex): NodeDifference | undefined {
    if (isBeingDeleted(node)) return undefined;
    const pending = this.#pending(node, index);
    pending.difference ??= differenceOf(node, pending.desired, index.settings);
    const { changes, record, needsLedger } = pending.difference;
    const recorded = stringAt(node, "metadata", "annotations", RECORD);
    if (needsLedger || changes.length > 0 || recordText(record) !== recorded) return pending.difference;
    // Ten thousand nodes that need no work would fill memory.
    this.forget(node);
    return undefined;
  }

  forget(node: JsonObject): void {
    this.#nodes.delete(node);
  }

  #pending(node: JsonObject, index: RuleIndex): PendingNode {
    const known = this.#nodes.get(node);
    if (known?.index === index && known.version === index.version) return known;
    const pending = { desired: desiredOf(node, index), index, version: index.version };
    this.#nodes.set(node, pending);
    return pending;
  }
}
