import { IMMUTABLE } from "./criterion.ts";
import { nameCriterion } from "./name-criterion.ts";

/**
 * priorityClassName
 *
 * Field:    spec.priorityClassName
 * Merge:    set where the pod has none; otherwise kept (USHER-P10). Skipped where the PriorityClass does not exist (USHER-P20). priority
 *           and preemptionPolicy of a pod are removed: the API server sets them from the class, and refuses others.
 * Holds:    idempotent; order-independent except for which policy wins a conflict.
 * Update:   immutable on pods and Jobs; mutable in templates.
 */
export const priorityClassName = nameCriterion("priorityClassName", {
  description: "Name of the PriorityClass of the pod. Set where the pod names none.",
  mutability: IMMUTABLE,
  derived: ["priority", "preemptionPolicy"],
  reference: {
    kind: "PriorityClass",
    resource: "priorityclasses.scheduling.k8s.io",
    access: {
      group: "scheduling.k8s.io",
      resource: "priorityclasses",
      verbs: ["get"],
      why: "see whether what a policy names exists",
    },
  },
});
