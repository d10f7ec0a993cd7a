import { evaluate, type Outside } from "../../core/evaluate/evaluate.ts";
import { draftOf, type Evaluation } from "../../core/evaluate/evaluate-hooks.ts";
import { patchOf } from "../../core/evaluate/patch.ts";
import type { AdmissionRequest } from "../../core/evaluate/request.ts";
import { resultOf } from "./outcome.ts";
import type { Rehearsal } from "./rehearsal.ts";
import type { ReviewResult } from "./result.ts";

export interface Judgement {
  readonly result: ReviewResult;
  /** The mutating phase, whose edits --emit replays on the manifest. */
  readonly evaluation: Evaluation;
}

/** Evaluates one request exactly as the webhook would: mutate, then validate on the result. What it is allowed counts for the next. */
export async function judge(
  request: AdmissionRequest,
  rehearsal: Rehearsal,
  options: { readonly trace: boolean; readonly now: number },
): Promise<Judgement> {
  const { assembly } = rehearsal.source;
  const outside: Outside = {
    fetch: (needs) => rehearsal.fetch(needs),
    commit: (commit) => rehearsal.commit(commit),
    expired: () => false,
  };
  const { trace, now } = options;
  const call = { assembly, hooks: assembly.hooks, request, now, trace, draft: draftOf(request) };
  const mutated = await evaluate({ ...call, phase: "mutate" }, outside);
  const patch = request.object === undefined ? [] : patchOf(mutated.draft);
  const phases = [mutated];
  // A request that the first phase denies never reaches the second.
  if (mutated.denials.length === 0) phases.push(await evaluate({ ...call, phase: "validate" }, outside));
  if (phases.every(({ denials }) => denials.length === 0)) rehearsal.admit(request, mutated.draft.object);
  return {
    result: resultOf(request, phases, patch, trace ? assembly.hooks : undefined),
    evaluation: mutated,
  };
}
