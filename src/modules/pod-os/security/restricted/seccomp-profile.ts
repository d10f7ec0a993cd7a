import type { JsonObject } from "../../../../core/json.ts";
import type { Check, Failure, Places, RestrictedField } from "../check.ts";
import { causesAt, containerNames, containersWhere, contextPaths } from "../containers.ts";
import { isSet, type JudgedPod } from "../judged-pod.ts";
import { ALLOWED_PROFILES, forbiddenSeccompProfiles } from "../seccomp.ts";

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
  variants: [
    { since: 19, fields: FIELDS, evaluate: forbidden },
    { since: 25, skips: "windows", fields: FIELDS, evaluate: forbidden },
  ],
};

const PROFILE = { type: "RuntimeDefault" };
const POD_EDIT = { path: ["spec", "securityContext", "seccompProfile"], value: PROFILE };
const isSilent = (context: JsonObject): boolean => !isSet(context["seccompProfile"]);

function forbidden(pod: JudgedPod): Failure | undefined {
  const explicit = forbiddenSeccompProfiles(pod, PROFILE);
  const implicit = isSilent(pod.context) ? containersWhere(pod, isSilent) : undefined;
  if (explicit !== undefined && implicit === undefined) return explicit;
  if (explicit !== undefined) return { ...explicit, places: (most) => withPodProfile(explicit.places(most)) };
  if (implicit === undefined) return undefined;
  return {
    reason: "seccompProfile",
    detail: `pod or ${containerNames(pod, implicit)} must set securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost"`,
    places: (most) => ({
      causes: causesAt(
        contextPaths(pod, false, implicit, most, "seccompProfile", "type"),
        "must be RuntimeDefault or Localhost here or for the pod",
      ),
      edits: [POD_EDIT],
    }),
  };
}

function withPodProfile({ causes, edits = [] }: Places): Places {
  return { causes, edits: [...edits, POD_EDIT] };
}
