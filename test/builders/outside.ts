import type { Commit } from "../../src/core/evaluate/decision.ts";
import type { CommitResult, Host } from "../../src/core/evaluate/evaluate.ts";
import { type Fact, type Need, needKey } from "../../src/core/evaluate/need.ts";

export interface RecordedHost extends Host {
  /** What was asked for, one list for each fetch. */
  readonly fetches: (readonly Need[])[];
  readonly commits: Commit[];
}

/** An outside that answers from functions and remembers what it was asked. */
export function outside({
  fact = () => ({ absent: "NotFound" }),
  commit = () => "done",
  expired = () => false,
}: {
  readonly fact?: (need: Need, fetch: number) => Fact;
  readonly commit?: (commit: Commit, attempt: number) => CommitResult;
  readonly expired?: () => boolean;
} = {}): RecordedHost {
  const fetches: (readonly Need[])[] = [];
  const commits: Commit[] = [];
  return {
    fetches,
    commits,
    expired,
    fetch: async (needs) => {
      fetches.push(needs);
      return needs.map((need) => fact(need, fetches.length));
    },
    commit: async (one) => {
      commits.push(one);
      return commit(one, commits.length);
    },
  };
}

/** An outside with just these objects, by resource and name. */
export function outsideWith(facts: readonly (readonly [Need, Fact])[]): RecordedHost {
  const known = new Map(facts.map(([need, fact]) => [needKey(need), fact]));
  return outside({ fact: (need) => known.get(needKey(need)) ?? { absent: "NotFound" } });
}
