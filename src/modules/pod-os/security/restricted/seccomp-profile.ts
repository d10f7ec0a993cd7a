import { at, type JsonObject } from "../../../../core/json.ts";
import { CONTEXT, POD_CONTEXT } from "../cel.ts";
import type { Check, CheckInCel, Failure, FieldViolation, FixEdit, RestrictedField } from "../check.ts";
import { type CheckedPod, isSet } from "../checked-pod.ts";
import { causesAt, containerNames, containersWhere, contextPaths } from "../containers.ts";
import { ALLOWED_PROFILES, evaluateSeccompProfiles, SECCOMP_IN_CEL } from "../seccomp.ts";

const FIELDS: readonly RestrictedField[] = [
  {
    scope: "pod",
    path: ["securityContext", "seccompProfile"],
    allowed: ALLOWED_PROFILES,
    forbidden: [null, { type: "Unconfined" }],
  },
  {
    scope: "container",
    path: ["securityContext", "seccompProfile"],
    allowed: [null, ...ALLOWED_PROFILES],
    forbidden: [{ type: "Unconfined" }],
  },
];

const IN_CEL: CheckInCel = {
  ...SECCOMP_IN_CEL,
  container: `${CONTEXT}.?seccompProfile.?type.orValue(${POD_CONTEXT}.?seccompProfile.?type.orValue("")) in ["RuntimeDefault", "Localhost"]`,
};

/**
 * Containers must run with a seccomp profile.
 *
 * Fields:  spec.securityContext.seccompProfile.type,
 *          spec.{containers,initContainers,ephemeralContainers}[*].securityContext.seccompProfile.type
 * Allowed: RuntimeDefault or Localhost for the pod, or for every container; nothing else anywhere.
 *          From v1.25 anything in a pod with `os.name: windows`
 * Fix:     sets RuntimeDefault: for the pod, and where it is something else.
 */
export const seccompProfileRestricted: Check = {
  id: "seccompProfile_restricted",
  level: "restricted",
  overrides: ["seccompProfile_baseline"],
  os: "linux",
  fix: setProfile,
  variants: [
    { since: 19, fields: FIELDS, cel: IN_CEL, evaluate: evaluateSeccompProfile },
    { since: 25, skips: "windows", fields: FIELDS, cel: IN_CEL, evaluate: evaluateSeccompProfile },
  ],
};

const PROFILE = { type: "RuntimeDefault" };
const POD_PROFILE = ["spec", "securityContext", "seccompProfile"];
const isSilent = (context: JsonObject): boolean => !isSet(context["seccompProfile"]);

function evaluateSeccompProfile(pod: CheckedPod, mostCauses: number): Failure | undefined {
  const explicit = evaluateSeccompProfiles(pod, mostCauses);
  if (explicit !== undefined) return explicit;
  const implicit = isSilent(pod.context) ? containersWhere(pod, isSilent) : undefined;
  if (implicit === undefined) return undefined;
  return {
    reason: "seccompProfile",
    detail: `pod or ${containerNames(pod, implicit)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`,
    causes: causesAt(
      contextPaths(pod, false, implicit, mostCauses, "seccompProfile", "type"),
      "must be RuntimeDefault or Localhost here or for the pod",
    ),
  };
}

/** Sets RuntimeDefault in place of other profiles, and for the pod if neither the pod nor a container has one. */
function setProfile(causes: readonly FieldViolation[], pod: CheckedPod): FixEdit[] {
  const profiles = causes.map(({ path }) => path.slice(0, -1));
  const explicit = profiles.filter((path) => isSet(at({ spec: pod.spec }, ...path)));
  const implicit = isSilent(pod.context) && pod.contexts.some(isSilent);
  return [...explicit, ...(implicit ? [POD_PROFILE] : [])].map((path) => ({ path, value: PROFILE }));
}
