import { type PatchOperation, patchOf } from "../decision/patch.ts";
import { type DenialStatus, statusOf } from "../decision/status.ts";
import type { Json } from "../json.ts";
import { auditOf } from "./audit.ts";
import type { Evaluation } from "./evaluate-hooks.ts";
import { warningsOf } from "./warnings.ts";

/** The `response` of an AdmissionReview, before it is encoded. */
export interface AdmissionResponse {
  readonly uid: string;
  readonly allowed: boolean;
  readonly patch: readonly PatchOperation[];
  readonly warnings: readonly string[];
  readonly audit: Readonly<Record<string, string>>;
  readonly status: DenialStatus | undefined;
}

/** The response of one evaluation: everything in it follows from edits, findings and denials. */
export function responseOf(evaluation: Evaluation): AdmissionResponse {
  const { request, denials, findings, phase, draft } = evaluation;
  const [first] = denials;
  const common = {
    uid: request.uid,
    warnings: warningsOf(findings),
    audit: auditOf(findings, first !== undefined),
  };
  if (first !== undefined)
    return { ...common, allowed: false, patch: [], status: statusOf(first, denials, findings, request) };
  const patch = phase === "mutate" && request.object !== undefined ? patchOf(draft) : [];
  return { ...common, allowed: true, patch, status: undefined };
}

/** AdmissionReview v1 as text. Most responses only allow, perhaps with a patch: these are written without building objects. */
export function reviewText(response: AdmissionResponse): string {
  const { uid, allowed, patch, warnings, audit, status } = response;
  if (!allowed || warnings.length > 0 || status !== undefined || !isEmpty(audit))
    return JSON.stringify(reviewOf(response));
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
export function reviewOf({ uid, allowed, patch, warnings, audit, status }: AdmissionResponse): Json {
  const response: Record<string, Json> = { uid, allowed };
  if (patch.length > 0) {
    response["patchType"] = "JSONPatch";
    response["patch"] = patchText(patch);
  }
  if (warnings.length > 0) response["warnings"] = warnings;
  if (!isEmpty(audit)) response["auditAnnotations"] = audit;
  if (status !== undefined) response["status"] = statusJson(status);
  return { apiVersion: "admission.k8s.io/v1", kind: "AdmissionReview", response };
}

function statusJson({ code, reason, message, details, causes, retryAfterSeconds }: DenialStatus): Json {
  return {
    code,
    reason,
    message,
    details: {
      ...details,
      causes: causes.map((cause) => ({ ...cause })),
      ...(retryAfterSeconds === undefined ? {} : { retryAfterSeconds }),
    },
  };
}
