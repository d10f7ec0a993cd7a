import type { JsonObject } from "../../../../core/json.ts";
import { CONTEXT } from "../cel.ts";
import type { Check, CheckInCel, Failure, RestrictedField } from "../check.ts";
import type { CheckedPod } from "../checked-pod.ts";
import { causesAt, containerNames, containersWhere, contextPaths } from "../containers.ts";

const FIELDS: readonly RestrictedField[] = [
  {
    scope: "container",
    path: ["securityContext", "allowPrivilegeEscalation"],
    allowed: [false],
    forbidden: [null, true],
  },
];

const IN_CEL: CheckInCel = { container: `!${CONTEXT}.?allowPrivilegeEscalation.orValue(true)` };

/**
 * Containers must not gain privileges.
 *
 * Fields:  spec.{containers,initContainers,ephemeralContainers}[*].securityContext.allowPrivilegeEscalation
 * Allowed: false; from v1.25 anything in a pod with `os.name: windows`
 * Fix:     sets false.
 */
export const allowPrivilegeEscalation: Check = {
  id: "allowPrivilegeEscalation",
  level: "restricted",
  os: "linux",
  fix: (causes) => causes.map(({ path }) => ({ path, value: false })),
  variants: [
    { since: 8, fields: FIELDS, cel: IN_CEL, evaluate: evaluatePrivilegeEscalation },
    { since: 25, skips: "windows", fields: FIELDS, cel: IN_CEL, evaluate: evaluatePrivilegeEscalation },
  ],
};

const breaks = (context: JsonObject): boolean => context["allowPrivilegeEscalation"] !== false;

function evaluatePrivilegeEscalation(pod: CheckedPod, mostCauses: number): Failure | undefined {
  const containers = containersWhere(pod, breaks);
  if (containers === undefined) return undefined;
  return {
    reason: "allowPrivilegeEscalation != false",
    detail: `${containerNames(pod, containers)} must set securityContext.allowPrivilegeEscalation=false`,
    causes: causesAt(
      contextPaths(pod, false, containers, mostCauses, "allowPrivilegeEscalation"),
      "must be false",
    ),
  };
}
