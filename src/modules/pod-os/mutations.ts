import { at, type JsonObject } from "../../core/json.ts";
import {
  ignore,
  type Mutant,
  type Mutations,
  membersOf,
  mutant,
  policyMutations,
  postpone,
  remove,
  removeAll,
  removeParts,
  restoreDefault,
  type Weakening,
  weaker,
} from "../../core/policy/mutants.ts";
import { podSecurityException } from "./kinds.ts";

const LEVEL = weaker("restricted", "baseline", "privileged");

/** A level is the policy of a namespace. */
function levelMutants(namespace: JsonObject): Mutant[] {
  return ["enforce", "warn", "audit"].flatMap((mode) => {
    const level = ["metadata", "labels", `pod-security.kubernetes.io/${mode}`];
    const version = ["metadata", "labels", `pod-security.kubernetes.io/${mode}-version`];
    return [
      ...LEVEL(at(namespace, ...level) ?? "", level),
      ...(at(namespace, ...version) === undefined ? [] : remove("", version)),
    ].map((one) => mutant(namespace, one));
  });
}

/** Exceptions, and the levels of namespaces. */
export const MUTATIONS: readonly Mutations[] = [
  policyMutations(podSecurityException, {
    checks: removeParts,
    namespaces: removeParts,
    podSelector: removeAll,
    serviceAccounts: removeAll,
    images: removeAll,
    containers: removeAll,
    owner: ignore("is for people"),
    reason: ignore("is for people"),
    expires: postpone,
  }),
  { resource: "namespaces", mutants: levelMutants },
];

/** Settings that decide about requests. */
export const SETTING_MUTATIONS: Weakening = membersOf({
  podSecurity: membersOf({
    mode: weaker("Replace", "Complement"),
    configuration: membersOf({
      apiVersion: ignore("is a name"),
      kind: ignore("is a name"),
      defaults: removeParts,
      exemptions: removeParts,
    }),
    templates: weaker("Deny", "Warn"),
    ephemeralContainers: restoreDefault("Whole"),
    windowsChecks: restoreDefault(false),
  }),
  os: membersOf({
    contradictions: weaker("Deny", "Warn", "Disabled"),
    write: restoreDefault(false),
    harden: removeParts,
    nodeMismatch: weaker("Deny", "Warn"),
    repairNodeLabels: ignore("is about nodes, not about requests"),
  }),
});
