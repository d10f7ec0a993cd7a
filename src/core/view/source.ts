import type { Assembly } from "../evaluate/assembly.ts";
import type { Commit } from "../evaluate/decision.ts";
import type { CommitResult } from "../evaluate/evaluate.ts";
import type { Fact, Need } from "../evaluate/need.ts";

/** How much time is left for what waits, provided by the server of the request. */
export interface Deadline {
  /** Milliseconds; zero or less when it is over or the caller is gone. */
  readonly remaining: () => number;
  /** Aborted when the time is over, the caller is gone, or the request was answered: whatever is held for it can be let go. */
  readonly signal: AbortSignal;
}

/** How long nothing was heard of a resource. */
export interface ResourceAge {
  readonly resource: string;
  readonly ms: number;
}

/** What did not fit into memory: an object that was left out of a list, or a list that ended early, as if by its limit. */
export interface ListCut {
  readonly resource: string;
  readonly what: "object" | "list";
  readonly count: number;
}

/**
 * Where what usher knows comes from: a directory of files, or a cluster. It keeps an assembly right, answers what a view can't
 * hold, and makes the writes that must succeed before "allow".
 */
export interface Source {
  readonly assembly: Assembly;
  /** True once everything that exists has been read. */
  readonly ready: boolean;
  /** How old what is known of each resource may be. @default always current */
  readonly ages?: () => readonly ResourceAge[];
  /** What lists have had to leave out so far. @default nothing */
  readonly cuts?: () => readonly ListCut[];
  /** One fact for each need, in order; what can't be had in time is a failed fact. Never rejects. */
  readonly fetch: (needs: readonly Need[], deadline: Deadline) => Promise<readonly Fact[]>;
  readonly commit: (commit: Commit, deadline: Deadline) => Promise<CommitResult>;
  readonly stop: () => Promise<void>;
}
