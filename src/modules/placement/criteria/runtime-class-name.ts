import { at, isObject, type Json, own, textOf } from "../../../core/json.ts";
import { type CriterionConflict, IMMUTABLE, type ReferenceContext } from "./criterion.ts";
import { nameCriterion } from "./name-criterion.ts";

/**
 * runtimeClassName
 *
 * Field:    spec.runtimeClassName
 * Merge:    set where the pod has none; otherwise kept (USHER-P10). Skipped where the RuntimeClass does not exist (USHER-P20), or its
 *           nodeSelector conflicts with the one that the pod gets (USHER-P23).
 * Holds:    idempotent; order-independent except for which policy wins a conflict.
 * Update:   immutable on pods and Jobs; mutable in templates.
 */
export const runtimeClassName = nameCriterion("runtimeClassName", {
  description: "Name of the RuntimeClass of the pod. Set where the pod names none.",
  mutability: IMMUTABLE,
  reference: {
    kind: "RuntimeClass",
    resource: "runtimeclasses.node.k8s.io",
    access: {
      group: "node.k8s.io",
      resource: "runtimeclasses",
      verbs: ["get"],
      why: "see whether what a policy names exists",
    },
    conflict: conflictingSelector,
  },
});

/** The API server refuses a pod that has a key of the RuntimeClass' nodeSelector with another value. */
function conflictingSelector(
  found: Json,
  name: string,
  { podSpec, wantedLabels }: ReferenceContext,
): CriterionConflict | undefined {
  const wanted = at(found, "scheduling", "nodeSelector");
  if (!isObject(wanted)) return undefined;
  const present = at(podSpec, "nodeSelector");
  // The pod's own keys come before those of policies.
  const valueToBe = (key: string) => {
    const value = own(present, key);
    return value === undefined ? wantedLabels().get(key) : textOf(value);
  };
  const key = Object.keys(wanted)
    .sort()
    .find((one) => ![undefined, wanted[one]].includes(valueToBe(one)));
  if (key === undefined) return undefined;
  const why = `RuntimeClass ${name} has another value for nodeSelector ${key} than the pod`;
  return { code: "USHER-P23", why };
}
