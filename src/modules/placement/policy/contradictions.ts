import { type JsonObject, own } from "../../../core/json.ts";
import { compileNodeSelector } from "../../../core/kubernetes/selectors/node-selector.ts";
import { type Problem, problem } from "../../../core/policy/problem.ts";
import type { Criteria } from "../criteria/criteria.ts";
import { satisfiable } from "../criteria/node-terms/satisfiable.ts";

const REQUIRED = [
  "affinity",
  "nodeAffinity",
  "requiredDuringSchedulingIgnoredDuringExecution",
  "nodeSelectorTerms",
];

/**
 * What one policy says that can't be true of any pod: it is an error, for the API server would refuse the pod, or no node would
 * ever be found for it.
 */
export function contradictionsIn(criteria: Criteria): Problem[] {
  const problems = [
    ...twice(criteria.topologySpreadConstraints, "topologySpreadConstraints", [
      "topologyKey",
      "whenUnsatisfiable",
    ]),
    ...twice(criteria.schedulingGates, "schedulingGates", ["name"]),
  ];
  if (criteria.nodeName !== undefined && criteria.schedulingGates.length > 0) {
    const message =
      "a pod that has its node already can't wait at a gate: leave out nodeName or schedulingGates";
    problems.push(problem(["spec", "schedulingGates"], message));
  }
  const possible = possibleTerms(criteria);
  if (possible.includes(false) && !possible.includes(true)) {
    const beside = criteria.nodeSelector.length === 0 ? "" : ", beside the nodeSelector of this policy,";
    const message = `no node could ever meet any of the terms${beside} whatever its labels: they contradict themselves`;
    problems.push(problem(["spec", ...REQUIRED], message));
  }
  return problems;
}

/** Of each required term, whether some node could meet it together with the nodeSelector; of an empty one nothing is said. */
export function possibleTerms({ requiredNodeTerms, nodeSelector }: Criteria): (boolean | undefined)[] {
  if (requiredNodeTerms.length === 0) return [];
  const { terms } = compileNodeSelector({ nodeSelectorTerms: requiredNodeTerms }, []);
  return terms.map((term) => (term.kind === "usable" ? satisfiable(term, nodeSelector) : undefined));
}

function twice(list: readonly JsonObject[], field: string, keys: readonly string[]): Problem[] {
  const seen = new Set<string>();
  return list.flatMap((item, i) => {
    const key = JSON.stringify(keys.map((name) => own(item, name) ?? null));
    if (!seen.has(key)) {
      seen.add(key);
      return [];
    }
    return [
      problem(
        ["spec", field, i],
        `is there before with the same ${keys.join(" and ")}; a pod may have it once`,
      ),
    ];
  });
}
