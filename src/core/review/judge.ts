import type { Assembly } from "../evaluate/assembly.ts";
import { evaluate, type Host } from "../evaluate/evaluate.ts";
import { draftOf, type Evaluation } from "../evaluate/evaluate-hooks.ts";
import { patchOf } from "../evaluate/patch.ts";
import type { AdmissionRequest } from "../evaluate/request.ts";
import type { JsonObject } from "../json.ts";
import { resultOf } from "./outcome.ts";
import type { ReviewResult } from "./result.ts";

/** What requests are judged by: an assembly, and the facts beyond its view. */
export interface Stage extends Pick<Host, "fetch" | "commit"> {
  readonly assembly: Assembly;
  /** An object that was allowed, for stages where it counts for later requests. */
  readonly admit: (request: AdmissionRequest, object: JsonObject) => void;
}

export interface Judgement {
  readonly result: ReviewResult;
  /** The mutating phase, whose edits --emit replays on the manifest. */
  readonly evaluation: Evaluation;
  /** The pod that is created, or one of the template, with usher's changes. Absent where there is none, or the request is denied. */
  readonly pod?: JsonObject;
}

/** Evaluates one request exactly as the webhook would: mutate, then validate on the result. What it is allowed counts for the next. */
export async function judge(
  request: AdmissionRequest,
  stage: Stage,
  options: { readonly trace: boolean; readonly now: number },
): Promise<Judgement> {
  const { assembly } = stage;
  const host: Host = {
    fetch: (needs) => stage.fetch(needs),
    commit: (commit) => stage.commit(commit),
    expired: () => false,
  };
  const { trace, now } = options;
  const call = { assembly, hooks: assembly.hooks, request, now, trace, draft: draftOf(request) };
  const mutated = await evaluate({ ...call, phase: "mutate" }, host);
  const patch = request.object === undefined ? [] : patchOf(mutated.draft);
  const phases = [mutated];
  // A request that the first phase denies never reaches the second.
  if (mutated.denials.length === 0) phases.push(await evaluate({ ...call, phase: "validate" }, host));
  if (phases.every(({ denials }) => denials.length === 0)) stage.admit(request, mutated.draft.object);
  return {
    result: resultOf(request, phases, patch, trace ? assembly.hooks : undefined),
    evaluation: mutated,
  };
}
