import type { JsonObject } from "../../../../core/json.ts";
import { celValue } from "../../../../core/kubernetes/cel.ts";
import { forbiddenAdds } from "../capability-adds.ts";
import { CONTEXT } from "../cel.ts";
import type { Check, Failure } from "../check.ts";
import type { CheckedPod } from "../checked-pod.ts";
import { causesAt, containerNames, containersWhere, removeElements } from "../containers.ts";

const ALLOWED: ReadonlySet<string> = new Set([
  "AUDIT_WRITE",
  "CHOWN",
  "DAC_OVERRIDE",
  "FOWNER",
  "FSETID",
  "KILL",
  "MKNOD",
  "NET_BIND_SERVICE",
  "SETFCAP",
  "SETGID",
  "SETPCAP",
  "SETUID",
  "SYS_CHROOT",
]);

/**
 * Capabilities beyond the usual default set may not be added.
 *
 * Fields:  spec.{containers,initContainers,ephemeralContainers}[*].securityContext.capabilities.add
 * Allowed: absent, empty, and the names of the list above, exactly so written
 * Fix:     removes the others.
 */
export const capabilitiesBaseline: Check = {
  id: "capabilities_baseline",
  level: "baseline",
  os: "linux",
  fix: removeElements,
  variants: [
    {
      since: 0,
      fields: [
        {
          scope: "container",
          path: ["securityContext", "capabilities"],
          allowed: [null, {}, { add: [] }, { add: [...ALLOWED] }],
          forbidden: [{ add: ["NET_RAW"] }, { add: ["CHOWN", "chown", "SYS_ADMIN"] }, { add: ["CAP_CHOWN"] }],
        },
      ],
      cel: {
        container: `${CONTEXT}.?capabilities.?add.orValue([]).all(a, a in ${celValue([...ALLOWED])})`,
      },
      evaluate: evaluateAddedCapabilities,
    },
  ],
};

const isForbidden = (name: unknown): boolean => typeof name !== "string" || !ALLOWED.has(name);
const breaks = (context: JsonObject): boolean => forbiddenAdds.any(context, isForbidden);

function evaluateAddedCapabilities(pod: CheckedPod, mostCauses: number): Failure | undefined {
  const containers = containersWhere(pod, breaks);
  if (containers === undefined) return undefined;
  return {
    reason: "non-default capabilities",
    detail: `${containerNames(pod, containers)} must not include ${forbiddenAdds.names(pod, containers, isForbidden)} in securityContext.capabilities.add`,
    causes: causesAt(
      forbiddenAdds.paths(pod, containers, isForbidden, mostCauses),
      "must be one of the default capabilities",
    ),
  };
}
