import type { DenialStatus } from "../../core/decision/status.ts";
import type { Evaluation } from "../../core/evaluate/evaluate-hooks.ts";
import { type AdmissionResponse, reviewText } from "../../core/evaluate/response.ts";
import type { Phase } from "../../core/module/hook.ts";

/** The HTTP response, before it is written. */
export interface HttpResponse {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  /** Undefined if the URL has no route. */
  readonly phase: Phase | undefined;
  /** Undefined if nothing was evaluated. */
  readonly evaluation: Evaluation | undefined;
  /** The allowed methods, if this one is not. @default POST */
  readonly allow?: string;
}

const JSON_TYPE = "application/json";
const TEXT_TYPE = "text/plain; charset=utf-8";

/** An HTTP error with one line of text. The API server applies the webhook's failurePolicy. */
export function textResponse(status: number, line: string, phase?: Phase): HttpResponse {
  return { status, type: TEXT_TYPE, body: `${line}\n`, phase, evaluation: undefined };
}

/** JSON other than a review. */
export function jsonResponse(status: number, body: string, type = JSON_TYPE): HttpResponse {
  return { status, type, body, phase: undefined, evaluation: undefined };
}

/** An AdmissionReview. */
export function reviewResponse(
  response: AdmissionResponse,
  phase: Phase,
  evaluation?: Evaluation,
): HttpResponse {
  return { status: 200, type: JSON_TYPE, body: reviewText(response), phase, evaluation };
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

/** Allowed with a warning: the result of a fail-open hook after an internal error. */
export function allowedWithWarning(uid: string, warning: string): AdmissionResponse {
  return { uid, allowed: true, patch: [], warnings: [warning], audit: {}, status: undefined };
}
