import type { Evaluation } from "../../core/evaluate/evaluate-hooks.ts";
import { type ModuleFinding, policyKey, policyName } from "../../core/evaluate/finding.ts";
import type { AdmissionRequest } from "../../core/evaluate/request.ts";
import { type Hook, hookWants } from "../../core/module/hook.ts";
import type { Traced } from "./result.ts";

/** Every policy once, with what it changed. */
export function traceOf(phases: readonly Evaluation[], findings: readonly ModuleFinding[]): Traced[] {
  const seen = new Set<string>();
  return phases
    .flatMap((phase) => phase.trace)
    .filter(({ module, policy }) => {
      const key = `${module} ${policyKey(policy)}`;
      return !seen.has(key) && seen.add(key);
    })
    .map(({ module, policy, applies, why }) => {
      const key = policyKey(policy);
      const mine = findings.filter(
        (one) => one.module === module && one.policy !== undefined && policyKey(one.policy) === key,
      );
      const skipped = applies === "applies" && mine.some(({ outcome }) => outcome === "skipped");
      return {
        module,
        policy: policyName(policy),
        applies: skipped ? "partly" : applies,
        why,
        parts: mine.filter(({ rule }) => rule !== "selection").map(partOf),
      };
    });
}

function partOf({ outcome, message }: ModuleFinding): string {
  const sign = outcome === "applied" ? "+" : outcome === "same" ? "=" : "!";
  return `${sign} ${message}`;
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
