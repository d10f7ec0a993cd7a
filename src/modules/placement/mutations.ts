import {
  ignore,
  type Mutations,
  membersOf,
  policyMutations,
  removeAll,
  removeParts,
  restoreDefault,
  type Weakening,
  weaker,
} from "../../core/policy/mutants.ts";
import { CRITERIA } from "./criteria/criteria.ts";
import { clusterPodSchedulingPolicy, podSchedulingPolicy } from "./kinds.ts";

const FIELDS: Readonly<Record<string, Weakening>> = {
  // A selector without parts selects everything.
  podSelector: removeParts,
  namespaceSelector: removeParts,
  ...Object.fromEntries(CRITERIA.map(({ path }) => [String(path[0]), removeAll])),
  fromNamespace: removeAll,
  targets: restoreDefault("Both"),
  onUpdate: restoreDefault("Restore"),
  onConflict: weaker("Refuse", "Skip"),
  priority: restoreDefault(0),
  failurePolicy: ignore("counts only while usher does not answer"),
  enforcement: weaker("Refuse", "Warn", "None"),
};

/** Both kinds of policies are weakened alike. */
export const MUTATIONS: readonly Mutations[] = [clusterPodSchedulingPolicy, podSchedulingPolicy].map((kind) =>
  policyMutations(kind, FIELDS),
);

/** Settings that decide about requests. */
export const SETTING_MUTATIONS: Weakening = membersOf({
  fallback: ignore("counts only while no replica is ready"),
  repairDrift: ignore("is about what is stored, not about requests"),
  resources: removeAll,
  trustedControllers: removeParts,
});
