import type { Commit } from "../../core/evaluate/decision.ts";
import type { CommitResult } from "../../core/evaluate/evaluate.ts";
import { DEADLINE_EXCEEDED } from "../../core/evaluate/need.ts";
import type { Deadline } from "../../core/view/source.ts";
import { errorMessage } from "../client/api-response.ts";
import { describeTarget } from "../client/object-access.ts";
import type { CommitBatchers } from "./commit-batchers.ts";

export type MakeCommit = (commit: Commit, deadline: Deadline) => Promise<CommitResult>;

/** Writes that must succeed before an allowed response: each replaces the version that its fact rests on, or conflicts. */
export function createCommits(batchers: CommitBatchers): MakeCommit {
  return async (commit, deadline) => {
    if (deadline.remaining() <= 0) return DEADLINE_EXCEEDED;
    try {
      return await batchers.commit(commit, deadline);
    } catch (error) {
      return { failed: errorMessage(describeTarget(commit), error) };
    }
  };
}

/** Where a process only serves: a request that needs a commit is denied, because uncounted it must not pass. */
export const refuseCommit: MakeCommit = async (commit) => ({
  failed: `${describeTarget(commit)}: usher does not operate this cluster and writes nothing to it`,
});
