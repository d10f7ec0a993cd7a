import { at, isObject, type JsonObject } from "../../../core/json.ts";
import { typeName } from "../../../core/kubernetes/field-error.ts";
import { affinity } from "../../../core/kubernetes/schemas.ts";
import { type Path, pointer } from "../../../core/path.ts";
import { type Problem, problem } from "../../../core/policy/problem.ts";
import { REQUIRED } from "./check-elements.ts";
import { type Criteria, type Criterion, CriterionValue } from "./criterion.ts";
import { nodeName } from "./node-name.ts";
import { nodeSelector } from "./node-selector.ts";
import {
  preferredPodAffinity,
  preferredPodAntiAffinity,
  requiredPodAffinity,
  requiredPodAntiAffinity,
} from "./pod-affinity.ts";
import { preferredNodeAffinity } from "./preferred-node-affinity.ts";
import { priorityClassName } from "./priority-class-name.ts";
import { requiredNodeAffinity } from "./required-node-affinity.ts";
import { runtimeClassName } from "./runtime-class-name.ts";
import { schedulerName } from "./scheduler-name.ts";
import { schedulingGates } from "./scheduling-gates.ts";
import { tolerations } from "./tolerations.ts";
import { topologySpreadConstraints } from "./topology-spread-constraints.ts";

/** All criteria, in the order of application: terms are evaluated with the labels before them, a gate comes before the node. */
export const CRITERIA: readonly Criterion[] = [
  nodeSelector,
  requiredNodeAffinity,
  preferredNodeAffinity,
  requiredPodAffinity,
  preferredPodAffinity,
  requiredPodAntiAffinity,
  preferredPodAntiAffinity,
  tolerations,
  topologySpreadConstraints,
  schedulingGates,
  schedulerName,
  priorityClassName,
  runtimeClassName,
  nodeName,
];

/** The fields of a pod's spec that criteria are about. */
export const CRITERIA_FIELDS: readonly string[] = [...new Set(CRITERIA.map(({ path }) => String(path[0])))];

/**
 * The criteria of a policy's spec, with all problems. Never throws: unreadable parts are skipped, and the problem makes
 * the policy invalid.
 */
export function parseCriteria(spec: JsonObject, problems: Problem[]): Criteria {
  for (const path of PARENT_PATHS) {
    const value = at(spec, ...path);
    if (value !== undefined && value !== null && !isObject(value))
      problems.push(problem(["spec", ...path], `must be an object, got ${typeName(value)}`));
  }
  const criteria = CRITERIA.flatMap((criterion) => {
    const value = criterion.parse(spec, problems);
    return value === undefined ? [] : [new CriterionValue(criterion, value)];
  });
  for (const { criterion, value } of criteria)
    problems.push(...(criterion.contradictions?.(value, criteria) ?? []));
  return criteria;
}

/** The objects that contain criteria, the outer ones first. */
const PARENT_PATHS: readonly Path[] = [
  ...new Map(
    CRITERIA.flatMap(({ path }) => path.slice(1).map((_, i) => path.slice(0, i + 1))).map((path) => [
      pointer(path),
      path,
    ]),
  ).values(),
];

/** The objects that hold several criteria, with their descriptions. */
export const PARENTS: Readonly<Record<string, string>> = {
  affinity:
    "Node affinity, pod affinity and pod anti-affinity to add to the pod. Required node affinity must hold in addition to the pod's.",
  ...Object.fromEntries(
    Object.entries(affinity.shape).map(([name, schema]) => [`affinity.${name}`, schema.description ?? ""]),
  ),
};

/** Only usher refuses it: a CRD can't compare two lists of one term. */
export const REFUSED_SPEC: JsonObject = {
  podSelector: {},
  affinity: {
    podAffinity: {
      [REQUIRED]: [
        { topologyKey: "zone", labelSelector: {}, matchLabelKeys: ["app"], mismatchLabelKeys: ["app"] },
      ],
    },
  },
};
