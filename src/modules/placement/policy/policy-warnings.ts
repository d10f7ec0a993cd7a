import { idle, PROBLEM, type Problem, warningProblem } from "../../../core/policy/problem.ts";
import { requiresNothing } from "../criteria/unmet.ts";
import type { PlacementPolicy } from "./policy.ts";

/** Valid but probably mistaken values: reported when the policy is written, and in its status. */
export function policyWarnings({
  criteria,
  enforcement,
  failure,
  fromNamespace,
}: Pick<PlacementPolicy, "criteria" | "enforcement" | "failure" | "fromNamespace">): Problem[] {
  const problems = criteria.flatMap(({ criterion, value }) => criterion.warnings?.(value, criteria) ?? []);
  const isComplete = fromNamespace === undefined;
  if (isComplete && criteria.length === 0)
    problems.push(idle(PROBLEM.noEffect, ["spec"], "has no scheduling criteria: the policy has no effect"));
  else if (isComplete && enforcement !== "None" && requiresNothing(criteria))
    problems.push(
      idle(
        PROBLEM.noEffect,
        ["spec", "enforcement"],
        "has no effect: the policy has only preferences, which are not enforced",
      ),
    );
  else if (enforcement === "Refuse" && failure === "Ignore")
    problems.push(
      warningProblem(
        ["spec", "failurePolicy"],
        "Ignore admits objects that enforcement: Refuse would refuse, whenever usher does not answer in time",
        "remove it, or set Fail",
      ),
    );
  return problems;
}
