import { type Commit, deny } from "../decision/decision.ts";
import type { Draft } from "../decision/draft.ts";
import type { Finding } from "../decision/finding.ts";
import { DEADLINE_EXCEEDED, type Fact, Facts, MAX_ROUNDS, type Need } from "../decision/need.ts";
import { draftOf, type Evaluation, type EvaluationRequest, evaluateHooks } from "./evaluate-hooks.ts";

/** Attempts at one commit. Each conflict means that another writer succeeded, so few suffice; the deadline is the real limit. */
export const MAX_COMMITS = 10;

export type CommitResult = "done" | "conflict" | { readonly failed: string };

/** The host of an evaluation: everything that waits. */
export interface Host {
  /** One fact for each need, in order. Never rejects: an unmet need is a failed fact. */
  readonly fetch: (needs: readonly Need[]) => Promise<readonly Fact[]>;
  readonly commit: (commit: Commit) => Promise<CommitResult>;
  /** True when the caller has disconnected or the deadline is too near to continue. */
  readonly expired: () => boolean;
}

/** One evaluation in progress. */
interface Progress {
  readonly request: EvaluationRequest;
  readonly draft: Draft;
  /** The draft's mark before any edit of this evaluation. */
  readonly start: number;
  readonly facts: Facts;
  readonly host: Host;
}

/**
 * Evaluates a request until it is decided: runs the hooks, fetches their needs and runs them again, then commits.
 * Synchronous as long as nothing is needed from outside, which is the usual case.
 */
export function evaluate(request: EvaluationRequest, host: Host): Evaluation | Promise<Evaluation> {
  const draft = request.draft ?? draftOf(request.request);
  const progress: Progress = {
    request: { ...request, draft },
    draft,
    start: draft.mark(),
    facts: new Facts(),
    host,
  };
  const first = evaluateHooks(progress.request, progress.facts);
  if ("needs" in first) return evaluateWithNeeds(progress, first.needs);
  return commitsOf(first).length > 0 ? commitAll(progress, first) : first;
}

async function evaluateWithNeeds(progress: Progress, firstNeeds: readonly Need[]): Promise<Evaluation> {
  const evaluation = await fetchAndEvaluate(progress, firstNeeds);
  return commitsOf(evaluation).length > 0 ? commitAll(progress, evaluation) : evaluation;
}

/** Fetches and runs the hooks again until nothing is needed. The first round has run when this begins. */
async function fetchAndEvaluate(progress: Progress, firstNeeds: readonly Need[]): Promise<Evaluation> {
  const { request, facts, host } = progress;
  let needs = firstNeeds;
  for (let rounds = 1; rounds < MAX_ROUNDS && !host.expired(); rounds++) {
    const found = await host.fetch(needs);
    for (const [i, one] of needs.entries())
      facts.set(one, found[i] ?? { failed: "the source returned no fact" });
    const next = evaluateHooks(request, facts);
    if (!("needs" in next)) return next;
    needs = next.needs;
  }
  const reason = host.expired() ? DEADLINE_EXCEEDED.failed : `still undecided after ${MAX_ROUNDS} rounds`;
  for (const one of needs) facts.set(one, { failed: reason });
  return evaluateLast(progress, reason);
}

/** The round in which nothing more can be fetched. */
function evaluateLast({ request, draft, start, facts }: Progress, reason: string): Evaluation {
  draft.undo(start);
  facts.close(reason);
  const final = evaluateHooks(request, facts);
  // With closed facts a module that still needs more counts as failed, so there are no needs.
  if ("needs" in final) throw new Error("needs remain after the facts were closed");
  return final;
}

/** Never on a dry run, and only once every module of the request has allowed it. */
function commitsOf(evaluation: Evaluation): readonly Commit[] {
  return evaluation.denials.length > 0 || evaluation.request.dryRun ? [] : evaluation.commits;
}

async function commitAll(progress: Progress, evaluation: Evaluation): Promise<Evaluation> {
  const { request, draft, start, facts, host } = progress;
  let current = evaluation;
  for (let attempt = 1; ; attempt++) {
    const stopped = await firstThatFails(commitsOf(current), host);
    if (stopped === undefined) return current;
    if (stopped.result === "conflict") facts.conflicts += 1;
    const failed = failureOf(stopped.result, attempt);
    if (failed !== undefined) {
      // The fact that the write is based on counts as failed now, so the module decides.
      facts.set(stopped.commit.rests, failed);
      return withoutCommits(evaluateLast(progress, failed.failed));
    }
    draft.undo(start);
    // Commits before the failed one were written: their facts are outdated too.
    for (const { rests } of [...stopped.done, stopped.commit]) facts.forget(rests);
    const again = evaluateHooks(request, facts);
    current = "needs" in again ? await fetchAndEvaluate(progress, again.needs) : again;
  }
}

/** A conflict is worth another attempt, up to a limit. */
function failureOf(result: Exclude<CommitResult, "done">, attempt: number) {
  if (result !== "conflict") return result;
  return attempt < MAX_COMMITS ? undefined : { failed: "too many concurrent writes" };
}

async function firstThatFails(commits: readonly Commit[], host: Host) {
  for (const [i, commit] of commits.entries()) {
    const done = commits.slice(0, i);
    if (host.expired()) return { done, commit, result: DEADLINE_EXCEEDED };
    const result = await host.commit(commit);
    if (result !== "done") return { done, commit, result };
  }
  return undefined;
}

const UNWRITTEN: Finding = {
  rule: "commit",
  outcome: "failed",
  code: "USHER-E03",
  message: "a record that this request depends on could not be written in time; try again",
};

/** A module that still commits although its commit failed has not handled the failure: the request is denied. */
function withoutCommits(evaluation: Evaluation): Evaluation {
  if (commitsOf(evaluation).length === 0) return evaluation;
  const { module = "usher", name: hook = "usher" } = evaluation.asked[0] ?? {};
  const { denial, findings } = deny({ code: 429, reason: "TooManyRequests", retryAfterSeconds: 1 }, [
    UNWRITTEN,
  ]);
  return {
    ...evaluation,
    commits: [],
    findings: [...evaluation.findings, ...findings.map((finding) => ({ ...finding, module }))],
    denials: denial === undefined ? [] : [{ ...denial, module, hook }],
  };
}
