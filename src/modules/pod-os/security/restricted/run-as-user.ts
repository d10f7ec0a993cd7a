import type { JsonObject } from "../../../../core/json.ts";
import { inContexts } from "../cel.ts";
import type { Check, CheckInCel, Failure, RestrictedField } from "../check.ts";
import type { CheckedPod } from "../checked-pod.ts";
import { causesAt, containersWhere, contextPaths, removeFields, setters } from "../containers.ts";

const FIELDS: readonly RestrictedField[] = (["pod", "container"] as const).map((scope) => ({
  scope,
  path: ["securityContext", "runAsUser"],
  allowed: [null, 1000],
  forbidden: [0],
}));

const IN_CEL: CheckInCel = inContexts((context) => `${context}.?runAsUser.orValue(1) != 0`);

/**
 * Containers must not run as user 0.
 *
 * Fields:  spec.securityContext.runAsUser,
 *          spec.{containers,initContainers,ephemeralContainers}[*].securityContext.runAsUser
 * Allowed: absent, any but 0; from v1.35 anything in a pod with `hostUsers: false`
 * Fix:     removes the field.
 */
export const runAsUser: Check = {
  id: "runAsUser",
  level: "restricted",
  os: "linux",
  fix: removeFields,
  variants: [
    { since: 23, fields: FIELDS, cel: IN_CEL, evaluate: evaluateUser },
    { since: 35, skips: "userNamespace", fields: FIELDS, cel: IN_CEL, evaluate: evaluateUser },
  ],
};

const isRoot = (context: JsonObject): boolean => context["runAsUser"] === 0;

function evaluateUser(pod: CheckedPod, mostCauses: number): Failure | undefined {
  const podBreaks = isRoot(pod.context);
  const containers = containersWhere(pod, isRoot);
  if (!podBreaks && containers === undefined) return undefined;
  return {
    reason: "runAsUser=0",
    detail: `${setters(pod, podBreaks, containers)} must not set runAsUser=0`,
    causes: causesAt(contextPaths(pod, podBreaks, containers, mostCauses, "runAsUser"), "must not be 0"),
  };
}
