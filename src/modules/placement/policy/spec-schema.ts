import { z } from "zod";
import {
  KEY_LENGTH,
  LABEL_KEY_PATTERN,
  NAME_LENGTH,
  orEmpty,
  SUBDOMAIN_PATTERN,
} from "../../../core/kubernetes/schemas/bounds.ts";
import {
  affinity,
  labelMap,
  labelSelector,
  schedulingGates,
  toleration,
  topologySpreadConstraints,
} from "../../../core/kubernetes/schemas.ts";
import type { CelRule } from "../../../core/policy/kind.ts";
import { ENFORCEMENT, FAILURE, ON_CONFLICT, ON_UPDATE, TARGETS } from "./policy.ts";

const name = (text: string) =>
  z
    .string()
    .max(NAME_LENGTH)
    .meta({ pattern: orEmpty(SUBDOMAIN_PATTERN) })
    .nullish()
    .describe(text);

const criteria = {
  podSelector: labelSelector
    .nullish()
    .describe(
      "Which pods, by their labels; for a controller the labels of its pod template. Absent: none. Empty: all.",
    ),
  nodeSelector: labelMap
    .nullish()
    .describe("Labels that a node must carry. A key that the pod sets itself stays the pod's."),
  nodeName: name("The node to run on. The pod goes past the scheduler; not together with schedulingGates."),
  affinity: affinity
    .nullish()
    .describe(
      "Node affinity, pod affinity and pod anti-affinity to merge into the pod. Required node affinity must hold beside the pod's own.",
    ),
  schedulerName: name("The scheduler to use, where the pod names none itself."),
  tolerations: z.array(toleration).max(64).nullish().describe("Tolerations to add."),
  topologySpreadConstraints: topologySpreadConstraints
    .nullish()
    .describe("How pods are spread over places. One for a place that the pod has already stays the pod's."),
  priorityClassName: name("The PriorityClass to give, where the pod names none itself."),
  runtimeClassName: name("The RuntimeClass to give, where the pod names none itself."),
  schedulingGates: schedulingGates
    .nullish()
    .describe("Gates to put before new pods: the scheduler looks at a pod when all are taken away."),
  targets: z
    .enum(TARGETS)
    .nullish()
    .describe(
      "What gets the criteria: Pods as they are made, Templates of the objects that make pods, or Both, the default.",
    ),
  onUpdate: z
    .enum(ON_UPDATE)
    .nullish()
    .describe(
      "What an update of an object gets: Restore, the default, puts back what this policy had put there and the update dropped; Inject gives it what the policy wants now, which may roll pods out.",
    ),
  onConflict: z
    .enum(ON_CONFLICT)
    .nullish()
    .describe(
      "What happens where the pod, or a policy that goes before, says otherwise: Skip, the default, leaves that part out with a warning, Refuse refuses the object.",
    ),
  // 32 bits, as PriorityClass values have; the extremes are of no use to anyone.
  priority: z
    .int()
    .min(-1_000_000_000)
    .max(1_000_000_000)
    .nullish()
    .describe("Which policy goes first where two set the same field: the higher one. Default 0."),
  failurePolicy: z
    .enum(FAILURE)
    .nullish()
    .describe(
      "What happens to an object when usher is away, or when it can't be known whether this policy wants it: Ignore lets it pass without this policy, Fail refuses it. Default Ignore.",
    ),
  enforcement: z
    .enum(ENFORCEMENT)
    .nullish()
    .describe(
      "What happens to an object that in the end lacks what this policy demands: None, the default, nothing; Warn tells the client; Refuse refuses it.",
    ),
};

export const namespaced = z.strictObject(criteria);
export const clusterWide = z.strictObject({
  ...criteria,
  namespaceSelector: labelSelector
    .nullish()
    .describe(
      "Which namespaces, by their labels. Absent: none, so that the policy has no effect. Empty: all.",
    ),
});

/** Keys of a map have no schema of their own: only a rule can look at them. */
export function labelKeys(field: string, inner?: string): CelRule {
  const map = inner === undefined ? `self.${field}` : `self.${field}.${inner}`;
  const absent = inner === undefined ? `!has(${map})` : `!has(self.${field}) || !has(${map})`;
  return {
    rule: `${absent} || ${map}.all(key, key.size() <= ${KEY_LENGTH} && key.matches('${LABEL_KEY_PATTERN}'))`,
    message: `${inner === undefined ? field : `${field}.${inner}`} has a key that is not a label key`,
  };
}

export const CEL_RULES: readonly CelRule[] = [
  labelKeys("nodeSelector"),
  labelKeys("podSelector", "matchLabels"),
  {
    rule: "!has(self.nodeName) || self.nodeName == '' || !has(self.schedulingGates) || self.schedulingGates.size() == 0",
    message: "a pod that has its node already can't wait at a gate: leave out nodeName or schedulingGates",
  },
];
