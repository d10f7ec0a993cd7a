import {
  become,
  eachOf,
  ignore,
  type Mutations,
  membersOf,
  negate,
  policyMutations,
  postpone,
  removeParts,
  restoreDefault,
  type Weakening,
  weaker,
} from "../../core/policy/mutants.ts";
import { override, policy, policyConfig, scheduler } from "./kinds.ts";

const groups = eachOf({
  name: ignore("another name is another group"),
  labelSelector: removeParts,
  mode: weaker("Enable", "Inform", "Disable"),
  authorizedUsers: removeParts,
  exactUsers: removeParts,
  authorizedGroups: removeParts,
  assigners: removeParts,
  workloads: removeParts,
  emergencyUsers: removeParts,
  emergencyGroups: removeParts,
  serviceAccountScope: weaker("Exact", "Namespace"),
  earlyRefusal: weaker("Deny", "Warn"),
  checkRequesterOnSelection: restoreDefault(false),
  protectNodeLabels: negate,
  guardAccessOnProtectedNodes: restoreDefault(false),
  newNodeGraceSeconds: restoreDefault(0),
  rbac: restoreDefault(false),
  steering: weaker("Affinity", "DropToleration", "Disabled"),
  failurePolicy: ignore("counts only while usher does not answer"),
  acknowledge: ignore("confirms what the policy says, for the check of the policy alone"),
});

/** Groups and their entries, in every kind that has them. */
export const MUTATIONS: readonly Mutations[] = [
  policyMutations(policyConfig, { groups }),
  policyMutations(policy, { consistency: restoreDefault("Corrected"), groups }),
  policyMutations(scheduler, { mastersSchedulable: restoreDefault(false), schedulingGroups: groups }),
  policyMutations(override, {
    group: ignore("another group is another override"),
    mode: weaker("Inform", "Disable"),
    from: ignore("an override begins when it is granted"),
    until: postpone,
    reason: ignore("is for people"),
  }),
];

/** Settings that decide about requests. */
export const SETTING_MUTATIONS: Weakening = membersOf({
  builtIn: become("None"),
  policy: membersOf({
    apiVersion: ignore("is a name"),
    kind: ignore("is a name"),
    groups,
  }),
  fallback: ignore("is about the time while usher is away"),
  manageTaint: ignore("is about nodes, not about requests"),
  schedulerCRD: ignore("is about what is registered"),
});
