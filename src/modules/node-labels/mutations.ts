import {
  ignore,
  type Mutations,
  membersOf,
  negate,
  policyMutations,
  remove,
  removeAll,
  removeParts,
  restoreDefault,
  type Weakening,
} from "../../core/policy/mutants.ts";
import { labels, ownedLabels } from "./kinds.ts";

/** Patterns and selectors choose nodes; labels, annotations and taints are set on them. */
export const MUTATIONS: readonly Mutations[] = [
  policyMutations(labels, {
    nodeNamePatterns: removeAll,
    nodeSelector: removeAll,
    labels: removeParts,
    annotations: removeParts,
    taints: removeParts,
    priority: restoreDefault(0),
    startupTaint: restoreDefault(false),
  }),
  policyMutations(ownedLabels, { domain: remove, namePattern: remove }),
];

/** Settings that decide about nodes. */
export const SETTING_MUTATIONS: Weakening = membersOf({
  namespace: remove,
  startupTaint: restoreDefault("usher.dev/starting"),
  gracePeriodSeconds: ignore("is about when, not whether"),
  openshift: negate,
});
