import type { Evaluation } from "../../core/evaluate/evaluate-hooks.ts";
import { type AdmissionResponse, reviewText } from "../../core/evaluate/response.ts";
import type { DenialStatus } from "../../core/evaluate/status.ts";
import type { Phase } from "../../core/module/hook.ts";

/** What goes back to the caller, before it is HTTP. */
export interface HttpResponse {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  /** Undefined where the address led nowhere. */
  readonly phase: Phase | undefined;
  /** Undefined where nothing was evaluated: then nothing follows the answer. */
  readonly evaluation: Evaluation | undefined;
}

const JSON_TYPE = "application/json";
const TEXT_TYPE = "text/plain; charset=utf-8";

/** A plain HTTP error: one line of text. The API server treats it by the webhook's failurePolicy. */
export function textResponse(status: number, line: string, phase?: Phase): HttpResponse {
  return { status, type: TEXT_TYPE, body: `${line}\n`, phase, evaluation: undefined };
}

/** An answer as the API server reads it. */
export function reviewResponse(
  answer: AdmissionResponse,
  phase: Phase,
  evaluation?: Evaluation,
): HttpResponse {
  return { status: 200, type: JSON_TYPE, body: reviewText(answer), phase, evaluation };
}

/** A denial without an evaluation. */
export function denied(uid: string, denial: Omit<DenialStatus, "causes">): AdmissionResponse {
  const { reason, message } = denial;
  return {
    uid,
    allowed: false,
    patch: [],
    warnings: [],
    audit: {},
    status: { ...denial, causes: [{ reason, message }] },
  };
}

/** Passes, and says so: what an open hook does where we can't judge. */
export function allowedWithWarning(uid: string, warning: string): AdmissionResponse {
  return { uid, allowed: true, patch: [], warnings: [warning], audit: {}, status: undefined };
}
