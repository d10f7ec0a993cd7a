import { PREFERRED } from "./shape/affinity-lists.ts";
import { podTermsCriterion } from "./shape/pod-terms.ts";

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
