import type { JsonObject } from "../../../../core/json.ts";
import type { Check, Failure, FixEdit, RestrictedField } from "../check.ts";
import { causesAt, containerNames, containersWhere, contextPaths, setters } from "../containers.ts";
import { isSet, type JudgedPod } from "../judged-pod.ts";

const FIELDS: readonly RestrictedField[] = [
  { scope: "pod", path: ["securityContext", "runAsNonRoot"], allowed: [true], forbidden: [null, false] },
  {
    scope: "container",
    path: ["securityContext", "runAsNonRoot"],
    allowed: [null, true],
    forbidden: [false],
  },
];

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
  variants: [
    { since: 0, fields: FIELDS, evaluate: forbidden },
    { since: 35, skips: "userNamespace", fields: FIELDS, evaluate: forbidden },
  ],
};

const REASON = "runAsNonRoot != true";
const POD_PATH = ["spec", "securityContext", "runAsNonRoot"];
const mayBeRoot = ({ runAsNonRoot: value }: JsonObject): boolean => isSet(value) && value !== true;
const isSilent = ({ runAsNonRoot: value }: JsonObject): boolean => !isSet(value);

function forbidden(pod: JudgedPod): Failure | undefined {
  const podBreaks = mayBeRoot(pod.context);
  const explicit = containersWhere(pod, mayBeRoot);
  const implicit = pod.context["runAsNonRoot"] === true ? undefined : containersWhere(pod, isSilent);
  if (podBreaks || explicit !== undefined) {
    return {
      reason: REASON,
      detail: `${setters(pod, podBreaks, explicit)} must not set securityContext.runAsNonRoot=false`,
      places: (most) => {
        const paths = contextPaths(pod, podBreaks, explicit, most, "runAsNonRoot");
        const edits: FixEdit[] = paths.map((path) => ({ path, value: true }));
        if (!podBreaks && implicit !== undefined) edits.push({ path: POD_PATH, value: true });
        return { causes: causesAt(paths, "must not be false"), edits };
      },
    };
  }
  if (implicit === undefined) return undefined;
  return {
    reason: REASON,
    detail: `pod or ${containerNames(pod, implicit)} must set securityContext.runAsNonRoot=true`,
    places: (most) => ({
      causes: causesAt(
        contextPaths(pod, false, implicit, most, "runAsNonRoot"),
        "must be true here or for the pod",
      ),
      edits: [{ path: POD_PATH, value: true }],
    }),
  };
}
