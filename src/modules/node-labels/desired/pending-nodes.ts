import type { JsonObject } from "../../../core/json.ts";
import type { RuleIndex } from "../rules/rule-index.ts";
import { type Desired, desiredOf } from "./desired.ts";

interface Entry {
  readonly desired: Desired;
  readonly index: RuleIndex;
  readonly version: number;
}

/**
 * The desired states of nodes that are about to be reconciled, so that each is computed once for the view's copy and once for the stored
 * node. Neither objects nor a version of the index ever change: without the cache every result is the same.
 */
export class DesiredCache {
  readonly #entries = new WeakMap<JsonObject, Entry>();

  of(node: JsonObject, index: RuleIndex): Desired {
    const known = this.#entries.get(node);
    if (known?.index === index && known.version === index.version) return known.desired;
    const desired = desiredOf(node, index);
    this.#entries.set(node, { desired, index, version: index.version });
    return desired;
  }

  /** For nodes that need no work: ten thousand of them would fill memory. */
  forget(node: JsonObject): void {
    this.#entries.delete(node);
  }
}
