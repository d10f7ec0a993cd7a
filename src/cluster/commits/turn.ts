import type { Fact } from "../../core/evaluate/need.ts";
import { onAbort } from "../client/retry.ts";

/**
 * Between a fact and its commit there is only synchronous evaluation. A request that takes longer is fetching or writing something else:
 * the next one continues, and the version of the late commit conflicts.
 */
const TURN_LIMIT_MS = 250;

/** The right of one request to read the newest state and to commit on top of it. */
export interface Turn {
  readonly signal: AbortSignal;
  readonly release: () => void;
}

/** A request that waits for its turn. */
export interface TurnRequest {
  readonly signal: AbortSignal;
  readonly arrived: number;
  readonly resolve: (fact: Fact) => void;
}

/** Calls `end` when the request's signal aborts or the turn takes too long. */
export function startTurn(signal: AbortSignal, end: () => void): Turn {
  const timer = setTimeout(end, TURN_LIMIT_MS);
  const off = onAbort(signal, end);
  const release = (): void => {
    clearTimeout(timer);
    off();
  };
  return { signal, release };
}
