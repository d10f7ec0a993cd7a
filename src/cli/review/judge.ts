import { answerOf } from "../../core/answer.ts";
import { draftOf, type Evaluation } from "../../core/engine.ts";
import { evaluate, type Outside } from "../../core/evaluate.ts";
import { type ModuleFinding, policyKey, policyName } from "../../core/finding.ts";
import { stringAt } from "../../core/json.ts";
import { describeNeed, type Need } from "../../core/need.ts";
import { patchOf } from "../../core/patch.ts";
import { fieldPath } from "../../core/path.ts";
import type { AdmissionRequest } from "../../core/request.ts";
import type { Source } from "../../core/source.ts";
import { OFFLINE } from "./offline.ts";
import type { ReviewResult } from "./result.ts";

export interface Judgement {
  readonly result: ReviewResult;
  /** What the mutating phase left: the edits that --emit repeats on the manifest. */
  readonly evaluation: Evaluation;
}

/** Judges one request exactly as the webhook would: mutate, then validate on the result. */
export async function judge(
  request: AdmissionRequest,
  source: Source,
  options: { readonly trace: boolean; readonly now: number },
): Promise<Judgement> {
  const { assembly } = source;
  const outside: Outside = {
    fetch: (needs) => source.fetch(needs, OFFLINE),
    // A review changes nothing: what would be recorded is taken for recorded.
    commit: async () => "done",
    expired: () => false,
  };
  const call = {
    assembly,
    hooks: assembly.hooks,
    request,
    now: options.now,
    trace: options.trace,
    draft: draftOf(request),
  };
  const mutated = await evaluate({ ...call, phase: "mutate" }, outside);
  const patch = request.object === undefined ? [] : patchOf(mutated.draft);
  const validated =
    mutated.denials.length > 0 ? undefined : await evaluate({ ...call, phase: "validate" }, outside);
  return { result: resultOf(request, mutated, validated, patch, options.trace), evaluation: mutated };
}

function resultOf(
  request: AdmissionRequest,
  mutated: Evaluation,
  validated: Evaluation | undefined,
  patch: ReviewResult["patch"],
  trace: boolean,
): ReviewResult {
  const phases = validated === undefined ? [mutated] : [mutated, validated];
  const findings = phases.flatMap((phase) => phase.findings);
  const denials = phases.flatMap((phase) => phase.denials);
  const denied = denials.length > 0;
  const unknown = new Set(phases.flatMap((phase) => phase.unknown.map(nameOfNeed)));
  const name = request.name || `${stringAt(request.object, "metadata", "generateName") ?? ""}*`;
  const { group, version, kind } = request.kind;
  return {
    object: {
      apiVersion: group === "" ? version : `${group}/${version}`,
      kind,
      namespace: request.namespace,
      name,
    },
    verdict: denied ? "deny" : "allow",
    patch: denied ? [] : patch,
    changes: denied ? [] : changesOf(mutated),
    violations: denied ? violationsOf(findings, denials) : [],
    warnings: [...new Set(phases.flatMap((phase) => answerOf(phase).warnings))],
    unknown: [...unknown],
    ...(trace ? { trace: traceOf(phases, findings) } : {}),
  };
}

function changesOf({ draft }: Evaluation): ReviewResult["changes"] {
  return draft.edits.flatMap(({ finding, path }) =>
    finding === undefined
      ? []
      : [
          {
            module: finding.module,
            policy: finding.policy === undefined ? "" : policyName(finding.policy),
            path: fieldPath(path),
            message: finding.message,
          },
        ],
  );
}

function violationsOf(
  findings: readonly ModuleFinding[],
  denials: Evaluation["denials"],
): ReviewResult["violations"] {
  const violated = findings.filter(({ outcome }) => outcome === "violated");
  if (violated.length === 0) {
    // A refusal without a violation of its own, such as a fault: the denial itself is what there is to say.
    return denials.map(({ module, reason, message }) => {
      const code = /\((USHER-[A-Z]\d+)\)/.exec(message)?.[1] ?? "";
      return { module, policy: "", rule: reason, code, path: "", message };
    });
  }
  return violated.map(({ module, policy, rule, code, path, message }) => ({
    module,
    policy: policy === undefined ? "" : policyName(policy),
    rule,
    code: code ?? "",
    path: path === undefined ? "" : fieldPath(path),
    message,
  }));
}

function traceOf(
  phases: readonly Evaluation[],
  findings: readonly ModuleFinding[],
): NonNullable<ReviewResult["trace"]> {
  const seen = new Set<string>();
  return phases
    .flatMap((phase) => phase.trace)
    .filter(({ module, policy }) => {
      const key = `${module} ${policyKey(policy)}`;
      return !seen.has(key) && seen.add(key);
    })
    .map(({ module, policy, applies, why }) => {
      const mine = findings.filter(
        (one) =>
          one.module === module && one.policy !== undefined && policyKey(one.policy) === policyKey(policy),
      );
      const skipped = applies === "applies" && mine.some(({ outcome }) => outcome === "skipped");
      return {
        module,
        policy: policyName(policy),
        applies: skipped ? ("skipped part" as const) : applies,
        why,
        parts: mine.filter(({ rule }) => rule !== "selection").map(partOf),
      };
    });
}

function partOf({ outcome, message }: ModuleFinding): string {
  const sign = outcome === "applied" ? "+" : outcome === "same" ? "=" : "!";
  return `${sign} ${message}`;
}

/** `Namespace shop` reads better than the resource name that a need carries. */
function nameOfNeed(need: Need): string {
  const text = describeNeed(need);
  return text
    .replace(/^namespaces /, "Namespace ")
    .replace(/^nodes /, "Node ")
    .replace(/^pods /, "Pod ");
}
