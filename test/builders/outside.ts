import type { Commit } from "../../src/core/decision/decision.ts";
import { type Fact, type Need, needKey } from "../../src/core/decision/need.ts";
import type { CommitResult, Host } from "../../src/core/evaluate/evaluate.ts";

export interface RecordedHost extends Host {
  /** The requested needs, one list per fetch. */
  readonly fetches: (readonly Need[])[];
  readonly commits: Commit[];
}

/** A fake outside that answers from functions and records the needs. */
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

/** A fake outside with only these objects, by resource and name. */
export function outsideWith(facts: readonly (readonly [Need, Fact])[]): RecordedHost {
  const known = new Map(facts.map(([need, fact]) => [needKey(need), fact]));
  return outside({ fact: (need) => known.get(needKey(need)) ?? { absent: "NotFound" } });
}
