import { at, isObject, type Json, textOf } from "../../../core/json.ts";
import { type Conflict, IMMUTABLE, type ReferenceContext, wantedOf } from "./criterion.ts";
import { nodeSelector } from "./node-selector.ts";
import { nameCriterion } from "./shape/name.ts";

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
function conflictingSelector(found: Json, name: string, context: ReferenceContext): Conflict | undefined {
  const wanted = at(found, "scheduling", "nodeSelector");
  const selector = selectorToBe(context);
  if (!isObject(wanted)) return undefined;
  const key = Object.keys(wanted)
    .sort()
    .find((one) => selector.has(one) && selector.get(one) !== wanted[one]);
  if (key === undefined) return undefined;
  const why = `RuntimeClass ${name} has another value for nodeSelector ${key} than the pod`;
  return { code: "USHER-P23", why };
}

/** The nodeSelector that an object will have: its own keys, then those of the policies in their order. */
function selectorToBe({ podSpec, criteria, budget }: ReferenceContext): ReadonlyMap<string, string> {
  budget.spend(criteria.length);
  const selector = new Map<string, string>();
  const own = at(podSpec, "nodeSelector");
  if (isObject(own)) for (const key of Object.keys(own)) selector.set(key, textOf(own[key]));
  for (const one of criteria) {
    for (const [key, value] of wantedOf(one, nodeSelector) ?? [])
      if (!selector.has(key)) selector.set(key, value);
  }
  return selector;
}
