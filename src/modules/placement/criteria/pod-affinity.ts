import { canonical, type JsonObject, own, stringAt, textOf } from "../../../core/json.ts";
import { podAffinity, podAntiAffinity } from "../../../core/kubernetes/schemas.ts";
import { checkPodTerm, checkPreferredPodTerm, PREFERRED, REQUIRED } from "./check-elements.ts";
import { IMMUTABLE } from "./criterion.ts";
import { listCriterion } from "./list-criterion.ts";
import { extendsElement } from "./unmet.ts";

const SCHEMAS = { podAffinity, podAntiAffinity } as const;

/** Terms about other pods. Required ones are enforced, preferred ones have a weight. */
function podTermsCriterion(
  name: string,
  field: "podAffinity" | "podAntiAffinity",
  list: typeof REQUIRED | typeof PREFERRED,
  text: string,
) {
  const required = list === REQUIRED;
  return listCriterion({
    name,
    path: ["affinity", field, list],
    text,
    schema: SCHEMAS[field].shape[list],
    check: required ? checkPodTerm : checkPreferredPodTerm,
    meaning: canonical,
    describe: required ? (term) => `by ${stringAt(term, "topologyKey") ?? ""}` : describeWeighted,
    ...(required ? { enforced: { meets: extendsElement, namedBy: "topologyKey" } } : {}),
    kubelet: "ignores",
    mutability: IMMUTABLE,
  });
}

export function describeWeighted(term: JsonObject): string {
  const topology = stringAt(term, "podAffinityTerm", "topologyKey");
  const weight = `weight ${textOf(own(term, "weight"))}`;
  return topology === undefined ? weight : `by ${topology}, ${weight}`;
}

/**
 * Required pod affinity
 *
 * Field:    spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution
 * Merge:    terms that the pod does not have are appended.
 * Holds:    narrows only (all terms must hold); idempotent; order-independent but for the order of terms.
 * Update:   immutable on pods and Jobs; mutable in templates.
 */
export const requiredPodAffinity = podTermsCriterion(
  "requiredPodAffinity",
  "podAffinity",
  REQUIRED,
  "required pod affinity",
);

/**
 * Preferred pod affinity
 *
 * Field:    spec.affinity.podAffinity.preferredDuringSchedulingIgnoredDuringExecution
 * Merge:    terms that the pod does not have are appended.
 * Holds:    never restricts; idempotent; order-independent but for the order of terms. Not enforced.
 * Update:   immutable on pods and Jobs; mutable in templates.
 */
export const preferredPodAffinity = podTermsCriterion(
  "preferredPodAffinity",
  "podAffinity",
  PREFERRED,
  "preferred pod affinity",
);

/**
 * Required pod anti-affinity
 *
 * Field:    spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution
 * Merge:    terms that the pod does not have are appended.
 * Holds:    narrows only (all terms must hold); idempotent; order-independent but for the order of terms.
 * Update:   immutable on pods and Jobs; mutable in templates.
 */
export const requiredPodAntiAffinity = podTermsCriterion(
  "requiredPodAntiAffinity",
  "podAntiAffinity",
  REQUIRED,
  "required pod anti-affinity",
);

/**
 * Preferred pod anti-affinity
 *
 * Field:    spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution
 * Merge:    terms that the pod does not have are appended.
 * Holds:    never restricts; idempotent; order-independent but for the order of terms. Not enforced.
 * Update:   immutable on pods and Jobs; mutable in templates.
 */
export const preferredPodAntiAffinity = podTermsCriterion(
  "preferredPodAntiAffinity",
  "podAntiAffinity",
  PREFERRED,
  "preferred pod anti-affinity",
);
