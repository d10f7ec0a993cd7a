import type { DriftCounts } from "./drift/drift-counts.ts";
import { DriftRepair } from "./drift/drift-repair.ts";
import type { DriftWalk } from "./drift/drift-walk.ts";
import { NodeCounts } from "./status/node-counts.ts";

/** The reconciler's state for one cluster while a replica leads. Times in milliseconds of the monotonic clock. */
export interface PlacementState {
  readonly repair: DriftRepair;
  /** Changes of policies so far; those that the debounce has seen; those before the last scan started. */
  changes: number;
  debounced: number;
  scanned: number;
  /** When no policy has changed for long enough. */
  debouncedUntil: number;
  startedAt: number;
  endedAt: number;
  /** The scan that is under way. */
  walk: DriftWalk | undefined;
  /** Whether the API server called usher when statuses were last reconciled for it. */
  asked: boolean | undefined;
  /** How many nodes policies select. */
  readonly nodes: NodeCounts;
  /** The result of the last complete scan. */
  counts: DriftCounts | undefined;
}

export function initialPlacementState(): PlacementState {
  const never = Number.NEGATIVE_INFINITY;
  return {
    repair: new DriftRepair(),
    nodes: new NodeCounts(),
    asked: undefined,
    changes: 0,
    debounced: 0,
    scanned: 0,
    debouncedUntil: never,
    startedAt: never,
    endedAt: never,
    walk: undefined,
    counts: undefined,
  };
}
