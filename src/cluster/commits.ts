import type { Commit } from "../core/decision.ts";
import type { CommitResult } from "../core/evaluate.ts";
import type { Deadline } from "../core/source.ts";
import type { Lanes } from "./lanes.ts";
import { describeTarget } from "./object-access.ts";
import { errorOf } from "./refusal.ts";

export type MakeCommit = (commit: Commit, deadline: Deadline) => Promise<CommitResult>;

/** The writes that must succeed before "allow": each swaps what its fact rests on for the next state, or conflicts. */
export function createCommits(lanes: Lanes): MakeCommit {
  return async (commit, deadline) => {
    if (deadline.remaining() <= 0) return { failed: "the time for this request ran out" };
    try {
      return await lanes.commit(commit, deadline);
    } catch (error) {
      return { failed: errorOf(describeTarget(commit), error) };
    }
  };
}
