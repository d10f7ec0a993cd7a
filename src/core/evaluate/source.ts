import type { Commit } from "../decision/decision.ts";
import type { Fact, Need } from "../decision/need.ts";
import type { Assembly } from "../module/assembly.ts";
import type { CommitResult } from "./evaluate.ts";

/** The time left for a waiting request, provided by its server. */
export interface Deadline {
  /** Milliseconds; zero or less when it is over or the caller has disconnected. */
  readonly remaining: () => number;
  /**
   * Aborted when the time is over, the caller has disconnected, or the request was answered: resources held for it can
   * be released.
   */
  readonly signal: AbortSignal;
}

/** How long nothing was heard of a resource. */
export interface ResourceAge {
  readonly resource: string;
  readonly ms: number;
}

/** Objects that did not fit into memory: one that was left out of a list, or a list that ended early, as if by its limit. */
export interface ListCut {
  readonly resource: string;
  readonly what: "object" | "list";
  readonly count: number;
}

/**
 * The source of usher's state: a directory of files, or a cluster. It keeps an assembly up to date, answers needs
 * beyond the view, and makes the writes that must succeed before "allow".
 */
export interface Source {
  readonly assembly: Assembly;
  /** True once everything that exists has been read. */
  readonly ready: boolean;
  /** The age of the known state of each resource. @default always current */
  readonly ages?: () => readonly ResourceAge[];
  /** Objects that lists have left out so far. @default none */
  readonly cuts?: () => readonly ListCut[];
  /** One fact for each need, in order; an unmet need in time is a failed fact. Never rejects. */
  readonly fetch: (needs: readonly Need[], deadline: Deadline) => Promise<readonly Fact[]>;
  readonly commit: (commit: Commit, deadline: Deadline) => Promise<CommitResult>;
  readonly stop: () => Promise<void>;
}
