import { Draft } from "../../../core/decision/draft.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import { coversSelector, labelsMatching } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { PolicyProblem, WrittenPolicy } from "../../../core/module/module.ts";
import { policyName } from "../../../core/policy/policy-ref.ts";
import { idle, PROBLEM } from "../../../core/policy/problem.ts";
import { mergedObject } from "../criteria/context.ts";
import { NO_LIMITS } from "../criteria/criterion.ts";
import { WorkLimit } from "../criteria/work-limit.ts";
import { comparePolicies, type PlacementPolicy } from "../policy/policy.ts";
import { fits, merge } from "./merge-policies.ts";

interface Ranked {
  readonly policy: PlacementPolicy;
  readonly index: number;
}

/**
 * Policies that contradict an earlier one, found by merging both into an empty pod that both select. If priorities
 * differ their author has decided; then only a policy that can never add anything is a problem. Quadratic in the number
 * of policies.
 */
export function contradictions(policies: readonly WrittenPolicy<PlacementPolicy>[]): PolicyProblem[] {
  const ranked = policies
    .map(({ policy }, index): Ranked => ({ policy, index }))
    .filter(({ policy }) => policy.broken === undefined)
    .sort((a, b) => comparePolicies(a.policy, b.policy));
  return ranked.flatMap(({ policy, index }, i) =>
    ranked
      .slice(0, i)
      .flatMap((first) => between(first.policy, policy).map((problem) => ({ index, problem }))),
  );
}

/** The part of the second of two policies that still applies after the first. */
function between(first: PlacementPolicy, second: PlacementPolicy) {
  if (!haveCommonObject(first, second)) return [];
  const kept = skippedOf(first, second);
  const [worst] = kept.findings;
  if (worst === undefined) return [];
  const name = `${first.ref.kind} ${policyName(first.ref)}`;
  if (kept.nothingLeft && coversAll(first, second))
    return [
      idle(
        PROBLEM.unreachable,
        ["spec"],
        `can never apply: ${name} selects every object that this policy selects, comes first and contradicts it: ${worst.message}`,
        "remove the policy, give it a higher spec.priority, or narrow the other one",
      ),
    ];
  // Of two that only share objects with the labels of both, most never meet one.
  if (first.priority !== second.priority || !(coversAll(first, second) || coversAll(second, first)))
    return [];
  return kept.findings.map(({ path, message }) =>
    idle(
      PROBLEM.conflict,
      // A policy has its criteria at the same paths as a pod.
      path ?? ["spec"],
      `contradicts ${name}: ${message}; both have priority ${first.priority}, and ${orderOf(first, second)}`,
      "give the one that should win a higher spec.priority",
    ),
  );
}

function orderOf(first: PlacementPolicy, second: PlacementPolicy): string {
  return (first.ref.namespace === undefined) === (second.ref.namespace === undefined)
    ? "the name decides"
    : "policies of the cluster come first";
}

export function haveCommonObject(a: PlacementPolicy, b: PlacementPolicy): boolean {
  if (a.targets !== b.targets && a.targets !== "Both" && b.targets !== "Both") return false;
  const common = (one: "podSelector" | "namespaceSelector") => {
    const selectors = [a[one], b[one]];
    return !selectors.includes(undefined) && labelsMatching(selectors.filter((x) => x !== undefined));
  };
  return Boolean(common("podSelector") && common("namespaceSelector"));
}

function coversAll(wide: PlacementPolicy, narrow: PlacementPolicy): boolean {
  const covers = (one: "podSelector" | "namespaceSelector") => {
    const [outer, inner] = [wide[one], narrow[one]];
    return outer !== undefined && inner !== undefined && coversSelector(outer, inner);
  };
  const targets = wide.targets === "Both" || wide.targets === narrow.targets;
  return targets && covers("podSelector") && covers("namespaceSelector");
}

/** The part of the second policy that a pod with the first one's criteria does not get. */
function skippedOf(
  first: PlacementPolicy,
  second: PlacementPolicy,
): { readonly findings: readonly Finding[]; readonly nothingLeft: boolean } {
  const draft = new Draft({ spec: {} });
  const target = { ...mergedObject(draft, ["spec"], true), limits: NO_LIMITS };
  const findings: Finding[] = [];
  let edits = 0;
  for (const { ref, criteria, failure, size } of [first, second]) {
    findings.length = 0;
    edits = draft.edits.length;
    const request = { ref, criteria, onConflict: "Skip", failure, restoring: false } as const;
    const context = { ...target, limit: new WorkLimit() };
    if (fits(context, size)) merge(context, request, findings);
  }
  const skipped = findings.filter(({ outcome }) => outcome === "skipped");
  return { findings: skipped, nothingLeft: draft.edits.length === edits };
}
