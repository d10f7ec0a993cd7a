import { equal, type Json, type JsonObject } from "../../../core/json.ts";
import { sameToleration } from "../../../core/kubernetes/tolerations.ts";
import { type Problem, warningProblem } from "../../../core/policy/problem.ts";
import type { Criteria } from "../criteria/criteria.ts";
import { requiresNothing } from "../enforce/unmet-requirements.ts";
import { possibleTerms } from "./contradictions.ts";
import type { PlacementPolicy } from "./policy.ts";

const REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution";

/** What is allowed and hardly meant: told when the policy is written, and in its status. */
export function policyWarnings({
  criteria,
  enforcement,
}: Pick<PlacementPolicy, "criteria" | "enforcement">): Problem[] {
  const problems = [...bypassed(criteria), ...idleTerms(criteria), ...duplicates(criteria)];
  if (hasNoCriteria(criteria))
    problems.push(warningProblem(["spec"], "names no scheduling criteria, so this policy changes nothing"));
  else if (enforcement !== "None" && requiresNothing(criteria))
    problems.push(
      warningProblem(
        ["spec", "enforcement"],
        "has no effect: preferences are no demands, and there is nothing else here",
      ),
    );
  return problems;
}

export function hasNoCriteria(criteria: Criteria): boolean {
  return Object.values(criteria).every((value) => value === undefined || value.length === 0);
}

/** nodeName goes past the scheduler, and past all that only the scheduler looks at. */
function bypassed(criteria: Criteria): Problem[] {
  if (criteria.nodeName === undefined) return [];
  const idle = [
    ...(criteria.schedulerName === undefined ? [] : ["schedulerName"]),
    ...(criteria.preferredNodeTerms.length === 0 ? [] : ["preferred node affinity"]),
    ...(criteria.requiredPodTerms.length + criteria.preferredPodTerms.length === 0 ? [] : ["pod affinity"]),
    ...(criteria.requiredAntiTerms.length + criteria.preferredAntiTerms.length === 0
      ? []
      : ["pod anti-affinity"]),
    ...(criteria.topologySpreadConstraints.length === 0 ? [] : ["topologySpreadConstraints"]),
  ];
  const checked = [
    ...(criteria.nodeSelector.length === 0 ? [] : ["nodeSelector"]),
    ...(criteria.requiredNodeTerms.length === 0 ? [] : ["required node affinity"]),
  ];
  return [
    ...(idle.length === 0
      ? []
      : [
          warningProblem(
            ["spec", "nodeName"],
            `goes past the scheduler, so that ${idle.join(", ")} has no effect`,
          ),
        ]),
    ...(checked.length === 0
      ? []
      : [
          warningProblem(
            ["spec", "nodeName"],
            `goes past the scheduler, and a node that ${checked.join(" or ")} does not allow refuses the pod`,
          ),
        ]),
  ];
}

/** Of terms one must match: one that can't is of no use, and does no harm beside others. */
function idleTerms(criteria: Criteria): Problem[] {
  const path = ["spec", "affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms"];
  return possibleTerms(criteria).flatMap((possible, i) => {
    if (possible === true) return [];
    const why =
      possible === undefined
        ? "is empty and so matches no node"
        : "contradicts itself and so matches no node";
    return [warningProblem([...path, i], `${why}; it is left out`)];
  });
}

function duplicates(criteria: Criteria): Problem[] {
  const affinity = ["spec", "affinity"];
  const lists: readonly (readonly [readonly JsonObject[], readonly string[], typeof equal])[] = [
    [criteria.tolerations, ["spec", "tolerations"], sameToleration],
    [criteria.requiredNodeTerms, [...affinity, "nodeAffinity", REQUIRED, "nodeSelectorTerms"], equal],
    [criteria.preferredNodeTerms, [...affinity, "nodeAffinity", PREFERRED], equal],
    [criteria.requiredPodTerms, [...affinity, "podAffinity", REQUIRED], equal],
    [criteria.preferredPodTerms, [...affinity, "podAffinity", PREFERRED], equal],
    [criteria.requiredAntiTerms, [...affinity, "podAntiAffinity", REQUIRED], equal],
    [criteria.preferredAntiTerms, [...affinity, "podAntiAffinity", PREFERRED], equal],
  ];
  return lists.flatMap(([list, path, same]) =>
    list.flatMap((item: Json, i) => {
      const first = list.findIndex((other) => same(other, item));
      return first === i
        ? []
        : [warningProblem([...path, i], `says the same as [${first}], and is applied once`)];
    }),
  );
}
