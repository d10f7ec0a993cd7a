import { truncate } from "../../core/decision/bounds.ts";
import type { Count } from "../../core/decision/decision.ts";
import type { ModuleFinding } from "../../core/decision/finding.ts";
import { describeRequest } from "../../core/decision/request.ts";
import { countsAfter, type Effects, effectsOf } from "../../core/evaluate/effects.ts";
import type { Evaluation } from "../../core/evaluate/evaluate-hooks.ts";
import { factsOf, type Log } from "../../core/log.ts";
import { unverifiedLog } from "../observe/log-sampling.ts";

/** Kind, namespace and name have at most 63, 63 and 253 characters; a user's name may be an email address or a DN. */
const FACT_LENGTH = 512;

/** With those of three hooks a line stays below 16 KiB, beyond which container runtimes split it. */
const LOGGED_MESSAGE_LENGTH = 4_096;

export interface AfterResponseOptions {
  readonly log: Log;
  readonly count: (counts: readonly Count[]) => void;
  /** Receives events to write and tallies to keep. @default none */
  readonly effects?: ((effects: Effects) => void) | undefined;
  /** Receives every evaluation in which a hook took part. @default none */
  readonly decided?: ((evaluation: Evaluation) => void) | undefined;
}

/**
 * Counters, effects and log lines of an evaluation. Runs right after the response was handed to the socket: deferring
 * it to a later turn of the loop costs one more system call.
 */
export function afterResponse(options: AfterResponseOptions): (evaluation: Evaluation) => void {
  const unverified = { ...options, log: unverifiedLog(options.log) };
  return (evaluation) => {
    try {
      record(evaluation, evaluation.unverified ? unverified : options);
    } catch (error) {
      options.log.error(factsOf(error), "internal error recording a decision");
    }
  };
}

function record(evaluation: Evaluation, { log, count, effects, decided }: AfterResponseOptions): void {
  // No hook matched the request.
  if (evaluation.asked.length === 0) return;
  decided?.(evaluation);
  if (effects === undefined) count(countsAfter(evaluation));
  else {
    const due = effectsOf(evaluation);
    count(due.counts);
    if (due.events.length + due.tallies.length + due.observed.length > 0) effects(due);
  }
  for (const { code, module, error } of evaluation.findings) {
    // The client sees only an internal error; the log has its cause.
    if (code === "USHER-E01") {
      log.error({ module, ...factsOf(error), object: objectOf(evaluation) }, "internal error in module");
    }
  }
  if (evaluation.denials.length > 0) log.info(denialFacts(evaluation), "denied");
  else if (evaluation.findings.some(wouldViolate)) log.info(violationFacts(evaluation), "would be denied");
  else if (log.isLevelEnabled?.("debug")) log.debug(decisionFacts(evaluation), "decided");
}

function objectOf({ request }: Evaluation): string {
  return truncate(describeRequest(request), FACT_LENGTH);
}

function requestFacts(evaluation: Evaluation) {
  const { operation, userInfo, dryRun } = evaluation.request;
  const user = truncate(userInfo.username, FACT_LENGTH);
  return { phase: evaluation.phase, object: objectOf(evaluation), operation, user, dryRun };
}

function denialFacts(evaluation: Evaluation): object {
  const denials = evaluation.denials.map(({ hook, code, message }) => ({
    hook,
    code,
    message: truncate(message, LOGGED_MESSAGE_LENGTH),
  }));
  return { ...requestFacts(evaluation), denials };
}

function wouldViolate({ outcome }: ModuleFinding): boolean {
  return outcome === "would-violate";
}

/** For policies that only inform: as many as fit into the line. */
function violationFacts(evaluation: Evaluation): object {
  const messages = evaluation.findings.filter(wouldViolate).map(({ message }) => message);
  return { ...requestFacts(evaluation), violations: truncate(messages.join("\n"), LOGGED_MESSAGE_LENGTH) };
}

function decisionFacts(evaluation: Evaluation): object {
  const hooks = evaluation.asked.map((hook) => hook.name);
  return { ...requestFacts(evaluation), hooks, edits: evaluation.draft.edits.length };
}
