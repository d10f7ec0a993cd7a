import type { Json, JsonObject } from "../../../core/json.ts";
import { joinQuote, sortedSet } from "../go-text.ts";
import { inContexts } from "./cel.ts";
import type { Failure } from "./check.ts";
import { type CheckedPod, isSet, objectOf, shown } from "./checked-pod.ts";
import { causesAt, containersWhere, contextPaths, setters } from "./containers.ts";

/** The part of the seccomp rule that both levels share: profiles that no level allows. */
export const ALLOWED_PROFILES: readonly Json[] = [
  { type: "RuntimeDefault" },
  { type: "Localhost", localhostProfile: "p" },
];

export const SECCOMP_IN_CEL = inContexts(
  (context) => `${context}.?seccompProfile.?type.orValue("Localhost") in ["RuntimeDefault", "Localhost"]`,
);

function isForbidden(profile: Json | undefined): boolean {
  if (!isSet(profile)) return false;
  const type = objectOf(profile)["type"];
  return type !== "RuntimeDefault" && type !== "Localhost";
}

const breaks = (context: JsonObject): boolean => isForbidden(context["seccompProfile"]);

export function evaluateSeccompProfiles(pod: CheckedPod, mostCauses: number): Failure | undefined {
  const podBreaks = breaks(pod.context);
  const containers = containersWhere(pod, breaks);
  if (!podBreaks && containers === undefined) return undefined;
  const contexts = [...(podBreaks ? [pod.context] : []), ...(containers ?? []).map((i) => pod.contexts[i])];
  const values = sortedSet(contexts.values().map((one) => shown(objectOf(one?.["seccompProfile"])["type"])));
  return {
    reason: "seccompProfile",
    detail: `${setters(pod, podBreaks, containers)} must not set securityContext.seccompProfile.type to ${joinQuote(values)}`,
    causes: causesAt(
      contextPaths(pod, podBreaks, containers, mostCauses, "seccompProfile", "type"),
      "must be RuntimeDefault or Localhost",
    ),
  };
}
