import type { Commit } from "./decision.ts";
import type { Draft } from "./draft.ts";
import { type Fact, Facts, type Need } from "./need.ts";
import { type Call, draftOf, type Evaluation, evaluateRound } from "./round.ts";

/** After this many rounds what is still missing counts as failed: a module that asks for ever would never answer. */
export const MAX_ROUNDS = 3;

/** Attempts at one commit. Every conflict means that somebody else got on, so few suffice; the deadline is the real limit. */
export const MAX_COMMITS = 10;

export type CommitResult = "done" | "conflict" | { readonly failed: string };

/** What the heart asks of a shell: everything that waits. */
export interface Outside {
  /** One fact for each need, in order. Never rejects: what can't be had is a failed fact. */
  readonly fetch: (needs: readonly Need[]) => Promise<readonly Fact[]>;
  readonly commit: (commit: Commit) => Promise<CommitResult>;
  /** True when the caller is gone or the deadline too near to do more. */
  readonly expired: () => boolean;
}

/** One evaluation under way. */
interface Session {
  readonly call: Call;
  readonly draft: Draft;
  /** Where the draft stood before any edit of this call. */
  readonly start: number;
  readonly facts: Facts;
  readonly outside: Outside;
}

/**
 * Evaluates a call to its end. Synchronous as long as nothing is needed from outside, which is nearly always; a promise only
 * where something must be fetched or committed.
 */
export function evaluate(call: Call, outside: Outside): Evaluation | Promise<Evaluation> {
  const draft = call.draft ?? draftOf(call.request);
  const session: Session = {
    call: { ...call, draft },
    draft,
    start: draft.mark(),
    facts: new Facts(),
    outside,
  };
  const first = evaluateRound(session.call, session.facts);
  if ("needs" in first) return settle(session, first.needs);
  return commitsOf(first).length > 0 ? commitAll(session, first) : first;
}

async function settle(session: Session, firstNeeds: readonly Need[]): Promise<Evaluation> {
  const evaluation = await gather(session, firstNeeds);
  return commitsOf(evaluation).length > 0 ? commitAll(session, evaluation) : evaluation;
}

/** Fetches and evaluates again until nothing is needed. The first evaluateRound has run when this begins. */
async function gather(session: Session, firstNeeds: readonly Need[]): Promise<Evaluation> {
  const { call, facts, outside } = session;
  let needs = firstNeeds;
  for (let rounds = 1; rounds < MAX_ROUNDS && !outside.expired(); rounds++) {
    const found = await outside.fetch(needs);
    for (const [i, one] of needs.entries())
      facts.set(one, found[i] ?? { failed: "the source gave no answer" });
    const next = evaluateRound(call, facts);
    if (!("needs" in next)) return next;
    needs = next.needs;
  }
  const reason = outside.expired() ? "the time for this request ran out" : "too many rounds of questions";
  for (const one of needs) facts.set(one, { failed: reason });
  return last(session, reason);
}

/** The evaluateRound in which nothing more can be asked. */
function last(session: Session, reason: string): Evaluation {
  session.draft.undo(session.start);
  session.facts.close(reason);
  const final = evaluateRound(session.call, session.facts);
  // With closed facts a module that still asks has been turned into a failure, so there are no needs.
  if ("needs" in final) throw new Error("a closed evaluateRound asked for more");
  return final;
}

/** Never on a dry run, and only once every module of the call has allowed. */
function commitsOf(evaluation: Evaluation): readonly Commit[] {
  return evaluation.denials.length > 0 || evaluation.request.dryRun ? [] : evaluation.commits;
}

async function commitAll(session: Session, evaluation: Evaluation): Promise<Evaluation> {
  const { call, draft, facts, outside } = session;
  let current = evaluation;
  for (let attempt = 1; ; attempt++) {
    const stopped = await firstThatFails(commitsOf(current), outside);
    if (stopped === undefined) return current;
    const failed = failureOf(stopped.result, attempt);
    if (failed !== undefined) {
      // What the write rests on counts as failed now, so that its module says what that means.
      facts.set(stopped.commit.rests, failed);
      return withoutCommits(last(session, failed.failed));
    }
    draft.undo(session.start);
    // Those before it were written, so their facts have moved on as well, by our own hand.
    for (const { rests } of [...stopped.done, stopped.commit]) facts.forget(rests);
    const again = evaluateRound(call, facts);
    current = "needs" in again ? await gather(session, again.needs) : again;
  }
}

/** A conflict is worth another attempt, until there were too many of them. */
function failureOf(result: Exclude<CommitResult, "done">, attempt: number) {
  if (result !== "conflict") return result;
  return attempt < MAX_COMMITS ? undefined : { failed: "too many others wrote at the same time" };
}

async function firstThatFails(commits: readonly Commit[], outside: Outside) {
  for (const [i, commit] of commits.entries()) {
    const done = commits.slice(0, i);
    if (outside.expired()) {
      return { done, commit, result: { failed: "the time for this request ran out" } } as const;
    }
    const result = await outside.commit(commit);
    if (result !== "done") return { done, commit, result };
  }
  return undefined;
}

/** A module that was told that its write failed and still wants to write has not understood: that is a refusal. */
function withoutCommits(evaluation: Evaluation): Evaluation {
  if (commitsOf(evaluation).length === 0) return evaluation;
  const hook = evaluation.asked[0];
  return {
    ...evaluation,
    commits: [],
    denials: [
      {
        code: 429,
        reason: "TooManyRequests",
        retryAfterSeconds: 1,
        message: "what this request rests on could not be written in time; try again (USHER-E03)",
        module: hook?.module ?? "usher",
        hook: hook?.name ?? "usher",
      },
    ],
  };
}
