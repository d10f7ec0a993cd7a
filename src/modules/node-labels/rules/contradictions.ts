import { labelsMatching } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { PolicyProblem, WrittenPolicy } from "../../../core/module/module.ts";
import type { Path } from "../../../core/path.ts";
import { policyName } from "../../../core/policy/policy-ref.ts";
import { idle, PROBLEM } from "../../../core/policy/problem.ts";
import { compareRules, type NodeRule } from "./rule.ts";
import type { RulePolicy } from "./rule-index.ts";

/**
 * Rules of equal priority that set one key of one node to different values. Sure, not complete: two patterns have a common name where they
 * are equal, or where one is a name that the other matches.
 */
export function contradictions(policies: readonly WrittenPolicy<RulePolicy>[]): PolicyProblem[] {
  const rules = policies
    .flatMap(({ policy }, index) => (policy.kind === "rule" ? [{ rule: policy, index }] : []))
    .sort((a, b) => compareRules(a.rule, b.rule));
  return rules.flatMap(({ rule, index }, i) =>
    rules.slice(0, i).flatMap(({ rule: first }) => {
      if (first.priority !== rule.priority || !haveCommonNode(first, rule)) return [];
      return differences(first, rule).map(({ path, has, wants }) => ({
        index,
        problem: idle(
          PROBLEM.conflict,
          path,
          `contradicts Labels ${policyName(first.ref)}, which sets ${has}; this rule sets ${wants}; both have priority ${rule.priority}, and the name decides`,
          "give the one that should win a higher spec.priority",
        ),
      }));
    }),
  );
}

function haveCommonNode(a: NodeRule, b: NodeRule): boolean {
  const selectors = [a.selector, b.selector].filter((one) => one !== undefined);
  if (labelsMatching(selectors) === undefined) return false;
  if (a.patterns.length === 0 || b.patterns.length === 0) return selectors.length > 0;
  return a.patterns.some((one) =>
    b.patterns.some(
      (other) => one.source === other.source || one.matches(other.source) || other.matches(one.source),
    ),
  );
}

function differences(
  first: NodeRule,
  second: NodeRule,
): { readonly path: Path; readonly has: string; readonly wants: string }[] {
  const maps = (["labels", "annotations"] as const).flatMap((field) =>
    [...second[field]].flatMap(([key, wants]) => {
      const has = first[field].get(key);
      return has === undefined || has === wants
        ? []
        : [{ path: ["spec", field, key], has: `${key}=${has}`, wants: `${key}=${wants}` }];
    }),
  );
  const taints = second.taints.flatMap(({ key, effect, value }) => {
    const has = first.taints.find((one) => one.key === key && one.effect === effect);
    return has === undefined || has.value === value
      ? []
      : [
          {
            path: ["spec", "taints"],
            has: `taint ${key}=${has.value}:${effect}`,
            wants: `taint ${key}=${value}:${effect}`,
          },
        ];
  });
  return [...maps, ...taints];
}
