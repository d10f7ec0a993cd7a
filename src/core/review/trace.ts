import type { Evaluation, ModuleTrace } from "../evaluate/evaluate-hooks.ts";
import {
  type FindingOutcome,
  type ModuleFinding,
  messageWithCode,
  policyKey,
  policyName,
} from "../evaluate/finding.ts";
import type { AdmissionRequest } from "../evaluate/request.ts";
import { type Hook, hookWants } from "../module/hook.ts";
import { changeKinds, SIGNS } from "./change.ts";
import type { Change, Traced } from "./result.ts";

/** Every policy, and every rule that a module reports by itself, once, with what it changed. */
export function traceOf(phases: readonly Evaluation[], findings: readonly ModuleFinding[]): Traced[] {
  const entries = new Map<string, ModuleTrace>();
  for (const entry of phases.flatMap((phase) => phase.trace)) {
    const key = `${entry.module} ${policyKey(entry.policy)} ${entry.rule ?? ""}`;
    const known = entries.get(key);
    // Both phases report a policy: the phase in which it had an effect explains it.
    if (known === undefined || (known.applies === "not" && entry.applies !== "not")) entries.set(key, entry);
  }
  const kinds = changeKinds(phases);
  return [...entries.values()].map(({ module, policy, rule, applies, why }) => {
    const key = policyKey(policy);
    const mine = findings.filter(
      (one) =>
        rule === undefined &&
        one.module === module &&
        one.policy !== undefined &&
        policyKey(one.policy) === key,
    );
    return {
      module,
      kind: policy.kind,
      policy: policyName(policy),
      ...(rule === undefined ? {} : { rule }),
      applies: verdictOf(applies, mine),
      why,
      parts: mine.filter((one) => one.rule !== "selection").map((one) => partOf(one, kinds.get(one))),
    };
  });
}

/** On UPDATE a policy may restore what it had added, though it adds nothing new. */
function verdictOf(selected: ModuleTrace["applies"], findings: readonly ModuleFinding[]): Traced["applies"] {
  const some = (...wanted: readonly FindingOutcome[]) =>
    findings.some(({ outcome }) => wanted.includes(outcome));
  if (some("violated")) return "refuses";
  if (selected === "not") return some("applied", "same") ? "applies" : "not";
  return selected === "applies" && some("skipped") ? "partly" : selected;
}

function partOf(finding: ModuleFinding, change: Change["change"] = "add"): string {
  const { outcome } = finding;
  const sign = outcome === "applied" ? SIGNS[change] : outcome === "same" ? "=" : "!";
  return `${sign} ${messageWithCode(finding)}`;
}

/** Why no policy was evaluated. */
export function untouched(
  request: AdmissionRequest,
  phases: readonly Evaluation[],
  hooks: readonly Hook[],
): string {
  const asked = new Set(phases.flatMap((phase) => phase.asked.map(({ module }) => module)));
  if (asked.size > 0) return `no policy was evaluated; modules: ${[...asked].join(", ")}`;
  const { operation, namespace, kind, resource, subResource } = request;
  if (hooks.some(({ namespaces: _, ...anywhere }) => hookWants(anywhere, request))) {
    return `no policy was evaluated: namespace ${namespace} is exempt`;
  }
  const what = subResource === "" ? kind.kind : `${resource.resource}/${subResource}`;
  return `no policy was evaluated: no module handles ${operation} of ${what}`;
}
