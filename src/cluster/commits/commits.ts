import type { Commit } from "../../core/evaluate/decision.ts";
import type { CommitResult } from "../../core/evaluate/evaluate.ts";
import { DEADLINE_EXCEEDED } from "../../core/evaluate/need.ts";
import type { Deadline } from "../../core/view/source.ts";
import { errorMessage } from "../client/api-response.ts";
import { describeTarget } from "../client/object-access.ts";
import type { CommitBatchers } from "./commit-batchers.ts";

export type MakeCommit = (commit: Commit, deadline: Deadline) => Promise<CommitResult>;

/** The writes that must succeed before "allow": each swaps what its fact rests on for the next state, or conflicts. */
export function createCommits(lanes: CommitBatchers): MakeCommit {
  return async (commit, deadline) => {
    if (deadline.remaining() <= 0) return DEADLINE_EXCEEDED;
    try {
      return await lanes.commit(commit, deadline);
    } catch (error) {
      return { failed: errorMessage(describeTarget(commit), error) };
    }
  };
}
