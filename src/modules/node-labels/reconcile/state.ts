import { PendingNodes } from "../desired/pending-nodes.ts";
import type { LedgerCache } from "../ledger/ledger.ts";
import type { Ownership } from "../rules/ownership.ts";
import { Sweep } from "./sweep.ts";

/** The reconciler's state while a replica leads. */
export interface NodeLabelsState {
  readonly ledger: LedgerCache;
  readonly sweep: Sweep;
  readonly pending: PendingNodes;
  /** When the nodes of a rule were last counted, by its id; forgotten when the rule changes. */
  readonly countedAt: Map<string, number>;
  /** When the current spec of an ownership was first seen, by its id, of the monotonic clock; removed when it changes. */
  readonly firstSeen: Map<string, number>;
}

export function initialState(): NodeLabelsState {
  return {
    ledger: {},
    sweep: new Sweep(),
    pending: new PendingNodes(),
    countedAt: new Map(),
    firstSeen: new Map(),
  };
}

export function firstSeenOf({ firstSeen }: NodeLabelsState, { id }: Ownership, elapsed: number): number {
  const known = firstSeen.get(id) ?? elapsed;
  firstSeen.set(id, known);
  return known;
}
