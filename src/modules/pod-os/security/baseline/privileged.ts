import type { JsonObject } from "../../../../core/json.ts";
import { CONTEXT } from "../cel.ts";
import type { Check, Failure } from "../check.ts";
import { type CheckedPod, isSet } from "../checked-pod.ts";
import { causesAt, containerNames, containersWhere, contextPaths, removeFields } from "../containers.ts";

/**
 * Privileged containers are forbidden.
 *
 * Fields:  spec.{containers,initContainers,ephemeralContainers}[*].securityContext.privileged
 * Allowed: absent, false
 * Fix:     removes the field.
 */
export const privileged: Check = {
  id: "privileged",
  level: "baseline",
  os: "linux",
  fix: removeFields,
  variants: [
    {
      since: 0,
      fields: [
        {
          scope: "container",
          path: ["securityContext", "privileged"],
          allowed: [null, false],
          forbidden: [true],
        },
      ],
      cel: { container: `!${CONTEXT}.?privileged.orValue(false)` },
      evaluate: evaluatePrivileged,
    },
  ],
};

const breaks = ({ privileged: value }: JsonObject): boolean => isSet(value) && value !== false;

function evaluatePrivileged(pod: CheckedPod, mostCauses: number): Failure | undefined {
  const containers = containersWhere(pod, breaks);
  if (containers === undefined) return undefined;
  return {
    reason: "privileged",
    detail: `${containerNames(pod, containers)} must not set securityContext.privileged=true`,
    causes: causesAt(
      contextPaths(pod, false, containers, mostCauses, "privileged"),
      "must be false or absent",
    ),
  };
}
