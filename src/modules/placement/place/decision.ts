import { allow, type Decision, deny } from "../../../core/decision/decision.ts";
import type { Draft } from "../../../core/decision/draft.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import type { Context } from "../../../core/module/module.ts";
import type { PolicyIndex } from "../../../core/policy/policy-index.ts";
import { policyName } from "../../../core/policy/policy-ref.ts";
import { comparePolicies, type PlacementPolicy } from "../policy/policy.ts";
import type { Selection } from "../select/select.ts";

/** Policies by their selectors: all of them, and those that also inject on UPDATE. */
export interface Policies {
  readonly all: PolicyIndex<PlacementPolicy>;
  readonly injecting: PolicyIndex<PlacementPolicy>;
}

export function refuses(findings: readonly Finding[]): boolean {
  return findings.some(({ outcome }) => outcome === "violated");
}

/** If one policy refuses, none has changed anything. */
export function decide(draft: Draft, start: number, findings: readonly Finding[]): Decision {
  if (!refuses(findings)) return allow(findings);
  draft.undo(start);
  return deny({ code: 403, reason: "Forbidden" }, findings);
}

/** If no policy is tried, the trace has one reason for all. */
export function traceAll({ trace }: Context, { all }: Policies, why: string): void {
  if (trace !== undefined)
    for (const { ref } of [...all.items].sort(comparePolicies)) trace({ policy: ref, applies: "not", why });
}

/** Unclear is never "no match": it is reported, and the policy's failure mode decides. A namespace without a value is counted. */
export function unclearFindings({ unclear, withoutValue }: Selection): Finding[] {
  const skipped = withoutValue.map(
    ({ policy, why }): Finding => ({
      policy: policy.ref,
      rule: "selection",
      outcome: "skipped",
      code: "USHER-P24",
      message: `policy ${policyName(policy.ref)} skipped: ${why}`,
    }),
  );
  const unknown = unclear.map(({ policy, why, because }): Finding => {
    const closed = policy.failure === "Fail";
    const name = policyName(policy.ref);
    return {
      policy: policy.ref,
      rule: "selection",
      outcome: closed ? "violated" : "failed",
      code: because === "namespace" ? "USHER-P02" : "USHER-P03",
      message: closed
        ? `policy ${name} may select this object and refuses it: ${why}`
        : `policy ${name} skipped: ${why}`,
      ...(closed ? {} : { warn: 70 }),
      audit: { key: "unclear", value: name },
    };
  });
  return [...skipped, ...unknown];
}
