import { at, type JsonObject } from "../../../../core/json.ts";
import { CONTEXT, POD_CONTEXT } from "../cel.ts";
import type { Check, CheckInCel, Failure, FieldViolation, FixEdit, RestrictedField } from "../check.ts";
import { type CheckedPod, isSet } from "../checked-pod.ts";
import { causesAt, containerNames, containersWhere, contextPaths, setters } from "../containers.ts";

const FIELDS: readonly RestrictedField[] = [
  { scope: "pod", path: ["securityContext", "runAsNonRoot"], allowed: [true], forbidden: [null, false] },
  {
    scope: "container",
    path: ["securityContext", "runAsNonRoot"],
    allowed: [null, true],
    forbidden: [false],
  },
];

const IN_CEL: CheckInCel = {
  pod: `${POD_CONTEXT}.?runAsNonRoot.orValue(true)`,
  container: `${CONTEXT}.?runAsNonRoot.orValue(${POD_CONTEXT}.?runAsNonRoot.orValue(false))`,
};

/**
 * Containers must run as users other than root.
 *
 * Fields:  spec.securityContext.runAsNonRoot,
 *          spec.{containers,initContainers,ephemeralContainers}[*].securityContext.runAsNonRoot
 * Allowed: true for the pod and absent or true for containers, or true for every container; false nowhere.
 *          From v1.35 anything in a pod with `hostUsers: false`
 * Fix:     sets true: for the pod, and where it is false.
 */
export const runAsNonRoot: Check = {
  id: "runAsNonRoot",
  level: "restricted",
  os: "any",
  fix: setNonRoot,
  variants: [
    { since: 0, fields: FIELDS, cel: IN_CEL, evaluate: evaluateNonRoot },
    { since: 35, skips: "userNamespace", fields: FIELDS, cel: IN_CEL, evaluate: evaluateNonRoot },
  ],
};

const REASON = "runAsNonRoot != true";
const POD_PATH = ["spec", "securityContext", "runAsNonRoot"];
const mayBeRoot = ({ runAsNonRoot: value }: JsonObject): boolean => isSet(value) && value !== true;
const isSilent = ({ runAsNonRoot: value }: JsonObject): boolean => !isSet(value);

function evaluateNonRoot(pod: CheckedPod, mostCauses: number): Failure | undefined {
  const podBreaks = mayBeRoot(pod.context);
  const explicit = containersWhere(pod, mayBeRoot);
  const implicit = pod.context["runAsNonRoot"] === true ? undefined : containersWhere(pod, isSilent);
  if (podBreaks || explicit !== undefined) {
    return {
      reason: REASON,
      detail: `${setters(pod, podBreaks, explicit)} must not set securityContext.runAsNonRoot=false`,
      causes: causesAt(
        contextPaths(pod, podBreaks, explicit, mostCauses, "runAsNonRoot"),
        "must not be false",
      ),
    };
  }
  if (implicit === undefined) return undefined;
  return {
    reason: REASON,
    detail: `pod or ${containerNames(pod, implicit)} must set securityContext.runAsNonRoot=true`,
    causes: causesAt(
      contextPaths(pod, false, implicit, mostCauses, "runAsNonRoot"),
      "must be true here or for the pod",
    ),
  };
}

/** Sets true where it is false, and for the pod if neither the pod nor a container sets it. */
function setNonRoot(causes: readonly FieldViolation[], pod: CheckedPod): FixEdit[] {
  const explicit = causes.filter(({ path }) => isSet(at({ spec: pod.spec }, ...path)));
  const implicit = isSilent(pod.context) && pod.contexts.some(isSilent);
  return [...explicit.map(({ path }) => path), ...(implicit ? [POD_PATH] : [])].map((path) => ({
    path,
    value: true,
  }));
}
