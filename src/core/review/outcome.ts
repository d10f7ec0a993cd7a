import { auditOf } from "../evaluate/audit.ts";
import type { Evaluation } from "../evaluate/evaluate-hooks.ts";
import { type ModuleFinding, policyName } from "../evaluate/finding.ts";
import { describeNeed, type Need } from "../evaluate/need.ts";
import type { AdmissionRequest } from "../evaluate/request.ts";
import { responseOf } from "../evaluate/response.ts";
import { stringAt } from "../json.ts";
import type { Hook } from "../module/hook.ts";
import { fieldPath } from "../path.ts";
import { PROVENANCE } from "../provenance/annotation.ts";
import { changesOf } from "./change.ts";
import type { Change, ReviewResult } from "./result.ts";
import { traceOf, untouched } from "./trace.ts";

/** The result of one request, from its phases. With `traced`, all hooks, it includes the trace. */
export function resultOf(
  request: AdmissionRequest,
  phases: readonly Evaluation[],
  patch: ReviewResult["patch"],
  traced: readonly Hook[] | undefined,
): ReviewResult {
  const findings = phases.flatMap((phase) => phase.findings);
  const denials = phases.flatMap((phase) => phase.denials);
  const denied = denials.length > 0;
  const trace = traced === undefined ? undefined : traceOf(phases, findings);
  return {
    object: nameOf(request),
    verdict: denied ? "deny" : patch.length > 0 ? "patch" : "allow",
    patch: denied ? [] : patch,
    changes: denied ? [] : changesIn(phases, patch),
    violations: violationsOf(findings, denials),
    warnings: [...new Set(phases.flatMap((phase) => responseOf(phase).warnings))],
    audit: auditOf(findings),
    unknown: [...new Set(phases.flatMap((phase) => phase.unknown.map(nameOfNeed)))],
    ...(trace === undefined ? {} : { trace }),
    ...(trace?.length === 0 ? { untouched: untouched(request, phases, traced ?? []) } : {}),
  };
}

function nameOf(request: AdmissionRequest): ReviewResult["object"] {
  const { group, version, kind } = request.kind;
  const generated = stringAt(request.object, "metadata", "generateName") ?? "";
  return {
    apiVersion: group === "" ? version : `${group}/${version}`,
    kind,
    // A request for a Namespace has its own name as namespace, though the kind is cluster-scoped.
    namespace: group === "" && kind === "Namespace" ? "" : request.namespace,
    name: request.name === "" ? `${generated}*` : request.name,
  };
}

/** Where no policy changed anything, only the provenance annotation was corrected. */
function changesIn(phases: readonly Evaluation[], patch: ReviewResult["patch"]): ReviewResult["changes"] {
  const changes = phases.flatMap(changesOf);
  return changes.length > 0 || patch.length === 0 ? changes : [CORRECTED];
}

const CORRECTED: Change = {
  module: "usher",
  policy: "",
  change: "change",
  path: fieldPath(["metadata", "annotations", PROVENANCE]),
  message: "provenance annotation corrected",
};

/** All violations of modules that deny; a module that denies without one, as after an internal error, is reported by its denial. */
function violationsOf(
  findings: readonly ModuleFinding[],
  denials: Evaluation["denials"],
): ReviewResult["violations"] {
  const denying = new Set(denials.map(({ module }) => module));
  const violated = findings.filter(({ module, outcome }) => outcome === "violated" && denying.has(module));
  const unexplained = denials.filter(({ module }) => !violated.some((one) => one.module === module));
  return [
    ...violated.map(({ module, policy, rule, code, path, message, verbatim }) => ({
      module,
      policy: policy === undefined ? "" : policyName(policy),
      rule,
      code: code ?? "",
      path: path === undefined ? "" : fieldPath(path),
      // Words of another component are those of a cause, which has its field apart.
      message: verbatim && path !== undefined ? `${fieldPath(path)}: ${message}` : message,
    })),
    ...unexplained.map(({ module, reason, message }) => {
      const [shown = "", code = ""] = /\s*\((USHER-[A-Z]\d+)\)$/.exec(message) ?? [];
      const text = message.slice(0, message.length - shown.length);
      return { module, policy: "", rule: reason, code, path: "", message: text };
    }),
  ];
}

/** `Namespace shop` in place of the resource name. */
function nameOfNeed(need: Need): string {
  return describeNeed(need)
    .replace(/^namespaces /, "Namespace ")
    .replace(/^nodes /, "Node ")
    .replace(/^pods /, "Pod ");
}
