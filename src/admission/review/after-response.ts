import { countsAfter, type Effects, effectsOf } from "../../core/evaluate/effects.ts";
import type { Evaluation } from "../../core/evaluate/evaluate-hooks.ts";
import { describeRequest } from "../../core/evaluate/request.ts";
import { factsOf, type Log } from "../../core/log.ts";
import type { Count } from "../../core/module/metric.ts";

export interface AfterResponseOptions {
  readonly log: Log;
  readonly count: (counts: readonly Count[]) => void;
  /** Events to write and tallies to keep. @default nobody wants them */
  readonly effects?: ((effects: Effects) => void) | undefined;
}

/**
 * What follows an answer: counters, effects, log lines. Done at once, for the answer is with the network by then; put off to a later
 * turn of the loop it costs a system call more.
 */
export function afterResponse(options: AfterResponseOptions): (evaluation: Evaluation) => void {
  return (evaluation) => {
    try {
      record(evaluation, options);
    } catch (error) {
      options.log.error(factsOf(error), "the effects of a decision broke");
    }
  };
}

function record(evaluation: Evaluation, { log, count, effects }: AfterResponseOptions): void {
  // Nobody was asked, so nothing was decided.
  if (evaluation.asked.length === 0) return;
  if (effects === undefined) count(countsAfter(evaluation));
  else {
    const due = effectsOf(evaluation);
    count(due.counts);
    if (due.events.length > 0 || due.tallies.length > 0) effects(due);
  }
  for (const { code, module, audit } of evaluation.findings) {
    // The client was only told that there was a fault; here is what it was.
    if (code === "USHER-E01") {
      log.error(
        { module, error: audit?.value, object: describeRequest(evaluation.request) },
        "a module broke",
      );
    }
  }
  if (evaluation.denials.length > 0) log.info(refusedFacts(evaluation), "refused");
  else if (log.isLevelEnabled?.("debug")) log.debug(decidedFacts(evaluation), "decided");
}

function requestFacts({ request, phase }: Evaluation) {
  const { operation, userInfo, dryRun } = request;
  return { phase, object: describeRequest(request), operation, user: userInfo.username, dryRun };
}

function refusedFacts(evaluation: Evaluation): object {
  const denials = evaluation.denials.map(({ hook, code, message }) => ({ hook, code, message }));
  return { ...requestFacts(evaluation), denials };
}

function decidedFacts(evaluation: Evaluation): object {
  const hooks = evaluation.asked.map((hook) => hook.name);
  return { ...requestFacts(evaluation), hooks, edits: evaluation.draft.edits.length };
}
