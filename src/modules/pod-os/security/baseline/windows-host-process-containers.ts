import type { JsonObject } from "../../../../core/json.ts";
import { inContexts } from "../cel.ts";
import type { Check, Failure } from "../check.ts";
import { type CheckedPod, isSet, objectOf } from "../checked-pod.ts";
import { causesAt, containersWhere, contextPaths, removeFields, setters } from "../containers.ts";

/**
 * HostProcess containers are forbidden, whatever the OS of the pod.
 *
 * Fields:  spec.securityContext.windowsOptions.hostProcess,
 *          spec.{containers,initContainers,ephemeralContainers}[*].securityContext.windowsOptions.hostProcess
 * Allowed: absent, false
 * Fix:     removes the field.
 */
export const windowsHostProcess: Check = {
  id: "windowsHostProcess",
  level: "baseline",
  os: "windows",
  fix: removeFields,
  variants: [
    {
      since: 0,
      fields: (["pod", "container"] as const).map((scope) => ({
        scope,
        path: ["securityContext", "windowsOptions"],
        allowed: [null, {}, { hostProcess: false }],
        forbidden: [{ hostProcess: true }],
      })),
      cel: inContexts((context) => `!${context}.?windowsOptions.?hostProcess.orValue(false)`),
      evaluate: evaluateHostProcess,
    },
  ],
};

function breaks({ windowsOptions }: JsonObject): boolean {
  if (!isSet(windowsOptions)) return false;
  const { hostProcess } = objectOf(windowsOptions);
  return isSet(hostProcess) && hostProcess !== false;
}

function evaluateHostProcess(pod: CheckedPod, mostCauses: number): Failure | undefined {
  const podBreaks = breaks(pod.context);
  const containers = containersWhere(pod, breaks);
  if (!podBreaks && containers === undefined) return undefined;
  return {
    reason: "hostProcess",
    detail: `${setters(pod, podBreaks, containers)} must not set securityContext.windowsOptions.hostProcess=true`,
    causes: causesAt(
      contextPaths(pod, podBreaks, containers, mostCauses, "windowsOptions", "hostProcess"),
      "must be false or absent",
    ),
  };
}
