import { own } from "../../../../core/json.ts";
import { goQuote, plural, sortedSet } from "../../go-text.ts";
import type { Check, Failure } from "../check.ts";
import { type CheckedPod, isSet, nameOf, objectOf, shown } from "../checked-pod.ts";
import { causesAt, removeProfiles } from "../containers.ts";
import { ALLOWED_PROFILES, evaluateSeccompProfiles, SECCOMP_IN_CEL } from "../seccomp.ts";

const POD_KEY = "seccomp.security.alpha.kubernetes.io/pod";
const CONTAINER_PREFIX = "container.seccomp.security.alpha.kubernetes.io/";

/**
 * Seccomp may not be switched off.
 *
 * Annotations: until v1.18 seccomp.security.alpha.kubernetes.io/pod, and
 *              container.seccomp.security.alpha.kubernetes.io/NAME of existing containers
 * Allowed:     absent, runtime/default, docker/default, localhost/*; not the empty value
 * Fields:      from v1.19 spec.securityContext.seccompProfile.type,
 *              spec.{containers,initContainers,ephemeralContainers}[*].securityContext.seccompProfile.type
 * Allowed:     no profile, RuntimeDefault, Localhost
 * Fix:         removes the annotation or the profile.
 */
export const seccompProfileBaseline: Check = {
  id: "seccompProfile_baseline",
  level: "baseline",
  os: "linux",
  fix: removeProfiles,
  variants: [
    {
      since: 0,
      fields: [POD_KEY, `${CONTAINER_PREFIX}*`].map((key) => ({
        scope: "annotation",
        path: [key],
        allowed: [null, "runtime/default", "docker/default", "localhost/p"],
        forbidden: ["", "unconfined"],
      })),
      cel: {
        pod: isAllowedInCel(`"${POD_KEY}"`),
        container: isAllowedInCel(`"${CONTAINER_PREFIX}" + c.name`),
      },
      evaluate: evaluateAnnotations,
    },
    {
      since: 19,
      fields: (["pod", "container"] as const).map((scope) => ({
        scope,
        path: ["securityContext", "seccompProfile"],
        allowed: [null, ...ALLOWED_PROFILES],
        forbidden: [{ type: "Unconfined" }],
      })),
      cel: SECCOMP_IN_CEL,
      evaluate: evaluateSeccompProfiles,
    },
  ],
};

function isAllowedInCel(key: string): string {
  const value = `object.metadata.?annotations[?${key}].orValue("runtime/default")`;
  return `(${value} in ["runtime/default", "docker/default"] || ${value}.startsWith("localhost/"))`;
}

function evaluateAnnotations({ metadata, containers }: CheckedPod, mostCauses: number): Failure | undefined {
  const annotations = objectOf(metadata["annotations"]);
  const keys: string[] = [];
  const collect = (key: string): void => {
    const value = own(annotations, key);
    if (!isSet(value) || value === "runtime/default" || value === "docker/default") return;
    if (typeof value !== "string" || !value.startsWith("localhost/")) keys.push(key);
  };
  collect(POD_KEY);
  for (const container of containers) collect(`${CONTAINER_PREFIX}${nameOf(container)}`);
  if (keys.length === 0) return undefined;
  const forbidden = sortedSet(keys.map((key) => `${key}=${goQuote(shown(annotations[key]))}`));
  return {
    reason: "seccompProfile",
    detail: `forbidden ${plural("annotation", "annotations", forbidden.length)} ${forbidden.join(", ")}`,
    causes: causesAt(
      [...new Set(keys)].slice(0, mostCauses).map((key) => ["metadata", "annotations", key]),
      "must be runtime/default or docker/default, or start with localhost/",
    ),
  };
}
