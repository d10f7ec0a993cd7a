import type { Json } from "../json.ts";
import { fieldPath } from "../path.ts";
import { auditOf } from "./audit.ts";
import type { Evaluation } from "./evaluate-hooks.ts";
import { type ModuleFinding, policyKey } from "./finding.ts";
import { type PatchOperation, patchOf } from "./patch.ts";
import { warningsOf } from "./warnings.ts";

/** Causes are for machines; a Status with hundreds of them helps nobody and weighs on the audit log. */
export const CAUSES_LIMIT = 64;

export interface StatusCause {
  readonly reason: string;
  readonly message: string;
  readonly field?: string;
}

/** The `response` of an AdmissionReview, before it is encoded. */
export interface AdmissionResponse {
  readonly uid: string;
  readonly allowed: boolean;
  readonly patch: readonly PatchOperation[];
  readonly warnings: readonly string[];
  readonly audit: Readonly<Record<string, string>>;
  readonly status:
    | {
        readonly code: number;
        readonly reason: string;
        readonly message: string;
        readonly causes: readonly StatusCause[];
        readonly retryAfterSeconds?: number;
      }
    | undefined;
}

/** What leaves us for one evaluation: everything that follows from its edits and findings. */
export function responseOf(evaluation: Evaluation): AdmissionResponse {
  const { request, denials, findings, phase, draft } = evaluation;
  const [first] = denials;
  const common = { uid: request.uid, warnings: warningsOf(findings), audit: auditOf(findings) };
  if (first === undefined) {
    const patch = phase === "mutate" && request.object !== undefined ? patchOf(draft) : [];
    return { ...common, allowed: true, patch, status: undefined };
  }
  // Several modules may refuse: all are told, and the code is the first one's, in the modules' order.
  const retry = denials.find((denial) => denial.retryAfterSeconds !== undefined)?.retryAfterSeconds;
  const status = {
    code: first.code >= 400 ? first.code : 403,
    reason: first.reason,
    message: [...new Set(denials.map((denial) => denial.message))].join("\n"),
    causes: causesOf(findings),
    ...(retry === undefined ? {} : { retryAfterSeconds: retry }),
  };
  return { ...common, allowed: false, patch: [], status };
}

function causesOf(findings: readonly ModuleFinding[]): StatusCause[] {
  const causes: StatusCause[] = [];
  for (const finding of findings) {
    if (finding.outcome !== "violated") continue;
    if (causes.length === CAUSES_LIMIT) break;
    causes.push({
      reason: finding.code ?? finding.rule,
      message:
        finding.policy === undefined ? finding.message : `${policyKey(finding.policy)}: ${finding.message}`,
      ...(finding.path === undefined ? {} : { field: fieldPath(finding.path) }),
    });
  }
  return causes;
}

/** AdmissionReview v1 as it goes over the wire. Nearly every answer allows and says nothing else, but for a patch: that takes no objects. */
export function reviewText(answer: AdmissionResponse): string {
  const { uid, allowed, patch, warnings, audit, status } = answer;
  if (!allowed || warnings.length > 0 || status !== undefined || !isEmpty(audit))
    return JSON.stringify(reviewOf(answer));
  const change = patch.length === 0 ? "" : `,"patchType":"JSONPatch","patch":"${patchText(patch)}"`;
  return `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":${JSON.stringify(uid)},"allowed":true${change}}}`;
}

function isEmpty(object: object): boolean {
  for (const _ in object) return false;
  return true;
}

function patchText(patch: readonly PatchOperation[]): string {
  return Buffer.from(JSON.stringify(patch)).toString("base64");
}

/** AdmissionReview v1 as the API server reads it. */
export function reviewOf(answer: AdmissionResponse): Json {
  const response: Record<string, Json> = { uid: answer.uid, allowed: answer.allowed };
  if (answer.patch.length > 0) {
    response["patchType"] = "JSONPatch";
    response["patch"] = patchText(answer.patch);
  }
  if (answer.warnings.length > 0) response["warnings"] = answer.warnings;
  if (!isEmpty(answer.audit)) response["auditAnnotations"] = answer.audit;
  if (answer.status !== undefined) {
    const { code, reason, message, causes, retryAfterSeconds } = answer.status;
    const details: Record<string, Json> = {};
    if (causes.length > 0) details["causes"] = causes.map((cause) => ({ ...cause }));
    if (retryAfterSeconds !== undefined) details["retryAfterSeconds"] = retryAfterSeconds;
    response["status"] = {
      code,
      reason,
      message,
      ...(Object.keys(details).length === 0 ? {} : { details }),
    };
  }
  return { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response };
}
