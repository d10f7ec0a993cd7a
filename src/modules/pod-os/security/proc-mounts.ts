import type { JsonObject } from "../../../core/json.ts";
import { joinQuote, sortedSet } from "../go-text.ts";
import { CONTEXT } from "./cel.ts";
import type { CheckInCel, Failure, RestrictedField } from "./check.ts";
import { type CheckedPod, isSet, shown } from "./checked-pod.ts";
import { causesAt, containerNames, containersWhere, contextPaths } from "./containers.ts";

/** The rule of procMount that both levels share. */
export const PROC_MOUNT_FIELDS: readonly RestrictedField[] = [
  {
    scope: "container",
    path: ["securityContext", "procMount"],
    allowed: [null, "Default"],
    forbidden: ["Unmasked"],
  },
];

export const PROC_MOUNTS_IN_CEL: CheckInCel = {
  container: `${CONTEXT}.?procMount.orValue("Default") == "Default"`,
};

const breaks = ({ procMount }: JsonObject): boolean => isSet(procMount) && procMount !== "Default";

export function evaluateProcMounts(pod: CheckedPod, mostCauses: number): Failure | undefined {
  const containers = containersWhere(pod, breaks);
  if (containers === undefined) return undefined;
  const values = sortedSet(containers.values().map((i) => shown(pod.contexts[i]?.["procMount"])));
  return {
    reason: "procMount",
    detail: `${containerNames(pod, containers)} must not set securityContext.procMount to ${joinQuote(values)}`,
    causes: causesAt(
      contextPaths(pod, false, containers, mostCauses, "procMount"),
      "must be Default or absent",
    ),
  };
}
