import { REQUIRED } from "./shape/affinity-lists.ts";
import { podTermsCriterion } from "./shape/pod-terms.ts";

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
