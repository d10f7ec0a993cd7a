import { at, type JsonObject } from "../json.ts";
import { fieldPath } from "../path.ts";
import { policyKey } from "../policy/policy-ref.ts";
import { LINE_LENGTH, MESSAGE_LENGTH, truncate } from "./bounds.ts";
import type { Denial } from "./decision.ts";
import type { ModuleFinding } from "./finding.ts";
import type { AdmissionRequest } from "./request.ts";

/** A Status with hundreds of causes helps no client and grows the audit log. */
export const CAUSES_LIMIT = 64;

/** All causes together: half of the 102,400 bytes beyond which the API server's own audit backend truncates an event. */
export const CAUSES_LENGTH = 51_200;

/** The longest path of a field in Kubernetes' own types has some 150 characters, and a key in it as many again. */
export const FIELD_LENGTH = 512;

/** A DNS subdomain, the longest name in Kubernetes. Admission sees names before they are validated. */
export const NAME_LENGTH = 253;

export interface StatusCause {
  readonly reason: string;
  readonly message: string;
  readonly field?: string;
}

/** Which object a Status is about. */
export interface StatusDetails {
  readonly name: string;
  readonly group: string;
  /** As in Kubernetes' own errors: the resource, `pods`, but the kind, `Pod`, if the reason is `Invalid`. */
  readonly kind: string;
}

/** The Status that a client gets for a denied request. */
export interface DenialStatus {
  readonly code: number;
  readonly reason: string;
  readonly message: string;
  /** Absent if the request could not be decoded that far. */
  readonly details?: StatusDetails;
  readonly causes: readonly StatusCause[];
  readonly retryAfterSeconds?: number;
}

/** The Status of several denials. All messages are in it, bounded by `deny`; code and reason are the first one's, in the modules' order. */
export function statusOf(
  first: Denial,
  denials: readonly (Denial & { readonly module: string })[],
  findings: readonly ModuleFinding[],
  request: AdmissionRequest,
): DenialStatus {
  const retry = denials.find((denial) => denial.retryAfterSeconds !== undefined)?.retryAfterSeconds;
  return {
    code: first.code >= 400 ? first.code : 403,
    reason: first.reason,
    message: [...new Set(denials.map((denial) => denial.message))].join("\n"),
    details: { ...detailsOf(request, first.reason), ...first.details },
    causes: causesOf(denials, findings),
    ...(retry === undefined ? {} : { retryAfterSeconds: retry }),
  };
}

export function detailsOf(request: AdmissionRequest, reason: string): StatusDetails {
  const { kind, resource } = request;
  return {
    name: nameIn(request.name, request.object),
    ...(reason === "Invalid"
      ? { group: kind.group, kind: kind.kind }
      : { group: resource.group, kind: resource.resource }),
  };
}

/** As the API server names an object that has no name yet. */
export function nameIn(name: string, object: JsonObject | undefined): string {
  if (name !== "") return truncate(name, NAME_LENGTH);
  for (const key of ["name", "generateName"]) {
    const known = at(object, "metadata", key);
    if (typeof known === "string" && known !== "") return truncate(known, NAME_LENGTH);
  }
  return "Unknown";
}

/** The violations; for a module that denied without one its failures; and without any findings, the denial itself. */
function causesOf(
  denials: readonly (Denial & { readonly module: string })[],
  findings: readonly ModuleFinding[],
): StatusCause[] {
  const causes = findings.filter(({ outcome }) => outcome === "violated").map(causeOf);
  for (const { module, reason, message } of denials) {
    const theirs = findings.filter((finding) => finding.module === module);
    if (theirs.some(({ outcome }) => outcome === "violated")) continue;
    const failed = theirs.filter(({ outcome }) => outcome === "failed");
    causes.push(...(failed.length > 0 ? failed.map(causeOf) : [{ reason, message }]));
  }
  let length = 0;
  return causes.slice(0, CAUSES_LIMIT).filter(({ message, field }) => {
    length += message.length + (field?.length ?? 0);
    return length <= CAUSES_LENGTH;
  });
}

function causeOf({ code, rule, policy, message, path, verbatim }: ModuleFinding): StatusCause {
  const text = policy === undefined ? message : `${policyKey(policy)}: ${message}`;
  return {
    reason: code ?? rule,
    message: truncate(text, verbatim ? MESSAGE_LENGTH : LINE_LENGTH),
    ...(path === undefined ? {} : { field: truncate(fieldPath(path), FIELD_LENGTH) }),
  };
}
