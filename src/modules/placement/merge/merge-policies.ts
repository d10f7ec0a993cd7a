import { allow, type Decision, deny, type NeedMore } from "../../../core/evaluate/decision.ts";
import type { Draft } from "../../../core/evaluate/draft.ts";
import type { Finding, PolicyRef } from "../../../core/evaluate/finding.ts";
import { policyName } from "../../../core/evaluate/finding.ts";
import type { Need } from "../../../core/evaluate/need.ts";
import type { JsonObject } from "../../../core/json.ts";
import type { WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Path } from "../../../core/path.ts";
import type { SelectorIndex } from "../../../core/policy/selector-index.ts";
import type { FieldLimits } from "../criteria/criteria.ts";
import { KnownTerms } from "../criteria/node-terms/known-term.ts";
import { KnownLists } from "../criteria/shape/known-list.ts";
import type { PlacementPolicy } from "../policy/policy.ts";
import type { Selection } from "../select/select.ts";
import { isPod } from "../select/target.ts";
import { limitsNow } from "../update/mutability.ts";
import { merge } from "./merge.ts";
import { existing, nodeSelectorToBe } from "./references.ts";
import { WorkBudgets } from "./work-budget.ts";

/** Policies by whom they select: all of them, and those that also give updated objects something new. */
export interface Policies {
  readonly all: SelectorIndex<PlacementPolicy>;
  readonly injecting: SelectorIndex<PlacementPolicy>;
}

/** What is to be placed: an object, and where in it the pod's spec is. */
export interface Site {
  readonly draft: Draft;
  readonly workload: WorkloadKind;
  readonly spec: Path;
  readonly labels: JsonObject | undefined;
}

/** Merges what these policies want, in their order; or says what must be known before. */
export function mergeAll(
  context: Context,
  { draft, spec, workload }: Site,
  limits: FieldLimits,
  policies: readonly PlacementPolicy[],
  findings: Finding[],
  efforts: WorkBudgets = new WorkBudgets(),
): NeedMore | undefined {
  // Most objects are wanted by none.
  if (policies.length === 0) return undefined;
  const needs: Need[] = [];
  const holders = new Map<string, PolicyRef>();
  const lists = new KnownLists();
  const terms = new KnownTerms();
  const pod = isPod(workload);
  for (const policy of policies) {
    const { ref, onConflict, failure } = policy;
    const effort = efforts.of(ref);
    const nodeSelector = () => {
      effort.spend(policies.length);
      return nodeSelectorToBe(draft.get(...spec, "nodeSelector"), policies);
    };
    const now = limitsNow(limits, draft.get(...spec), policy.criteria);
    const criteria = effort.over
      ? policy.criteria
      : existing(policy, now, context, spec, nodeSelector, findings);
    if ("need" in criteria) needs.push(...criteria.need);
    else {
      const wish = { ref, criteria, onConflict, failure, restoring: false };
      merge({ draft, spec, pod, limits: now, holders, lists, terms, effort }, wish, findings);
    }
  }
  return needs.length > 0 ? { need: needs } : undefined;
}

export function refuses(findings: readonly Finding[]): boolean {
  return findings.some(({ outcome }) => outcome === "violated");
}

/** Where one policy refuses, none has changed anything. */
export function conclude(draft: Draft, start: number, findings: readonly Finding[]): Decision {
  if (!refuses(findings)) return allow(findings);
  draft.undo(start);
  return deny({ code: 403, reason: "Forbidden" }, findings);
}

/** Where no policy is tried, whoever asks why is told of each. */
export function sayOfAll({ trace }: Context, { all }: Policies, why: string): void {
  if (trace !== undefined) for (const { ref } of all.items) trace({ policy: ref, applies: "not", why });
}

/** What can't be said to apply or not is never taken for "no": it is told, and the policy's failure mode decides. */
export function unclearFindings({ unclear }: Selection): Finding[] {
  return unclear.map(({ policy, why, because }) => {
    const closed = policy.failure === "Fail";
    const name = policyName(policy.ref);
    return {
      policy: policy.ref,
      rule: "selection",
      outcome: closed ? "violated" : "failed",
      code: because === "namespace" ? "USHER-P02" : "USHER-P03",
      message: closed
        ? `policy ${name} may want this object, and refuses it since that can't be known: ${why}`
        : `policy ${name} was left out: ${why}`,
      ...(closed ? {} : { warn: 70 }),
      audit: { key: "unclear", value: name },
    };
  });
}
