import { PREFERRED } from "./shape/affinity-lists.ts";
import { podTermsCriterion } from "./shape/pod-terms.ts";

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
