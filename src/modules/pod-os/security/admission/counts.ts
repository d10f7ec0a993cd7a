import type { Count } from "../../../../core/decision/decision.ts";
import type { AdmissionRequest } from "../../../../core/decision/request.ts";
import type { ServerVersion } from "../../../../core/kubernetes/versions.ts";
import { ERRORS, EVALUATIONS, EXEMPTIONS } from "../../metrics.ts";
import { type LevelVersion, minorOf, type PodSecurityPolicy } from "../policy.ts";

function requestLabels({ operation, resource: { group, resource }, subResource }: AdmissionRequest) {
  const core = group === "" ? resource : "";
  return {
    request_operation: operation.toLowerCase(),
    resource: core === "pods" ? "pod" : core === "namespaces" ? "namespace" : "controller",
    subresource: subResource,
  };
}

export function evaluationCount(
  request: AdmissionRequest,
  decision: "allow" | "deny",
  mode: keyof PodSecurityPolicy,
  policy: LevelVersion,
  server: ServerVersion | undefined,
): Count {
  return {
    metric: EVALUATIONS,
    labels: {
      decision,
      policy_level: policy.level,
      policy_version: versionLabel(policy, server),
      mode,
      ...requestLabels(request),
    },
  };
}

/** Versions beyond the API server's own count as one, so that namespace labels can't create unlimited series. */
function versionLabel({ level, version }: LevelVersion, server: ServerVersion | undefined): string {
  if (level === "privileged" || version === "latest") return "latest";
  const newest = server?.effective.minor ?? Number.POSITIVE_INFINITY;
  return (minorOf(version) ?? 0) > newest ? "future" : version;
}

export function exemptionCount(request: AdmissionRequest): Count {
  return { metric: EXEMPTIONS, labels: requestLabels(request) };
}

export function errorCount(request: AdmissionRequest, fatal: boolean): Count {
  return { metric: ERRORS, labels: { fatal: String(fatal), ...requestLabels(request) } };
}
