import { z } from "zod";
import { LABEL_LENGTH } from "../../../core/kubernetes/schemas/bounds.ts";
import { labelSelector } from "../../../core/kubernetes/schemas.ts";
import { ACKNOWLEDGEMENTS, MODES } from "./group.ts";
import { ENTRY_LENGTH } from "./principals.ts";

/** Far more groups of protected nodes than a cluster has. */
const MOST_GROUPS = 16;
/** Enough for every component of a large platform. */
const MOST_ENTRIES = 2_048;
/** A day: longer than any bootstrap of a node. */
const MOST_GRACE_SECONDS = 86_400;

/** The module checks whether an entry is well formed: a bad entry invalidates only itself, not the object. */
function entries(description: string) {
  return z.array(z.string().max(ENTRY_LENGTH)).max(MOST_ENTRIES).optional().describe(description);
}

const name = z.string().min(1).max(LABEL_LENGTH).describe("The name of the group, such as ControlPlane.");

const mode = z
  .enum(["", ...MODES])
  .optional()
  .describe(
    "Disable: the group is not guarded. Inform: violations are reported and admitted. Enable: violations are refused. Empty: no opinion.",
  );

const AUTHORIZED =
  "Service accounts (namespace/name or system:serviceaccount:namespace:name) and users that may assign pods to nodes of the group; pods in the namespace of a service account may run there.";

const authorizedUsers = entries(AUTHORIZED);

const options = {
  exactUsers: entries("Users whose names have a slash. They may assign pods."),
  authorizedGroups: entries(
    "User groups that may assign pods. With system:serviceaccounts:<namespace> pods of that namespace may run there, too.",
  ),
  assigners: entries(
    "Service accounts and users that may assign pods; their own pods get no right to run there.",
  ),
  workloads: entries("Service accounts whose pods may run there and that may not assign pods."),
  emergencyUsers: entries(
    "Users and service accounts that may create any pod on a node of the group by spec.nodeName, as kubectl debug does.",
  ),
  emergencyGroups: entries("The same for user groups."),
  serviceAccountScope: z
    .enum(["Namespace", "Exact"])
    .optional()
    .describe(
      "Namespace: an authorised service account stands for all pods of its namespace. Exact: only for pods that use it. Defaults to Namespace.",
    ),
  earlyRefusal: z
    .enum(["Deny", "Warn"])
    .optional()
    .describe("What to do with a pod that could run only on nodes of the group. Defaults to Deny."),
  checkRequesterOnSelection: z
    .boolean()
    .optional()
    .describe(
      "Whether the creator of a pod that selects only nodes of the group must be authorised as well. Defaults to false.",
    ),
  protectNodeLabels: z
    .boolean()
    .optional()
    .describe(
      "Whether only authorised subjects may take a node out of the group. Defaults to true in Enable.",
    ),
  guardAccessOnProtectedNodes: z
    .boolean()
    .optional()
    .describe(
      "Whether exec, attach, port-forward, ephemeral containers and resize of pods on nodes of the group need an authorised subject. Defaults to false.",
    ),
  newNodeGraceSeconds: z
    .int()
    .min(0)
    .max(MOST_GRACE_SECONDS)
    .optional()
    .describe("How long a new node that is in no group counts as one of this group. Defaults to 0."),
  rbac: z
    .boolean()
    .optional()
    .describe(
      "Whether a right in RBAC authorises as an entry does. Members of system:masters have every right. Defaults to false.",
    ),
  steering: z
    .enum(["Affinity", "DropToleration", "Disabled", "Off"])
    .optional()
    .describe(
      "How pods that need not run on nodes of the group are kept off them in Enable. Disabled: not at all; Off, which YAML reads as a boolean without quotes, means the same. Defaults to Affinity.",
    ),
  failurePolicy: z
    .enum(["Fail", "Ignore"])
    .optional()
    .describe(
      "What happens to assignments and bindings to nodes of the group while usher does not answer. Ignore is accepted only while the fallback is in force. Defaults to Ignore where the fallback judges them as usher does, else to Fail.",
    ),
  acknowledge: z
    .array(z.enum(ACKNOWLEDGEMENTS))
    .max(ACKNOWLEDGEMENTS.length)
    .optional()
    .describe(
      "AllNodes: the selector is meant to select every node. NoOtherNodes: Enable is meant although every schedulable node is in the group.",
    ),
};

/** A group of a NodeSchedulingPolicyConfig. */
const configGroup = z
  .strictObject({
    name,
    labelSelector: labelSelector.describe("Selects the nodes of the group."),
    mode,
    authorizedUsers: authorizedUsers.unwrap().describe(AUTHORIZED),
    ...options,
  })
  .describe("A group of protected nodes.");

/** A group of a NodeSchedulingPolicy: of a group that exists already it has no selector. */
const policyGroup = z
  .strictObject({
    name,
    labelSelector: labelSelector
      .optional()
      .describe(
        "Selects the nodes of a new group. The selector of a group that exists otherwise can't be changed.",
      ),
    mode,
    authorizedUsers,
    ...options,
  })
  .describe("A new group, or what is added to an existing one.");

/** A group of a Scheduler. */
const schedulerGroup = z
  .strictObject({ name, mode, authorizedUsers })
  .describe("Mode and further entries of a group; only ControlPlane counts.");

function groupList<Group extends z.ZodType>(group: Group, description: string) {
  return z
    .array(group)
    .max(MOST_GROUPS)
    .meta({ description, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"] });
}

export const configSpec = z.strictObject({
  groups: groupList(configGroup, "The groups of protected nodes."),
});

export const policySpec = z.strictObject({
  consistency: z
    .enum(["Corrected", "Literal", "Disabled", "Off"])
    .optional()
    .describe(
      "How the mode of ControlPlane goes with mastersSchedulable of the Scheduler. Corrected: no Enable while it is true. Literal: Enable only while it is true. Disabled: not compared; Off, which YAML reads as a boolean without quotes, means the same. Defaults to Corrected.",
    ),
  groups: groupList(policyGroup, "Modes, options and entries of groups, and further groups.").optional(),
});

/** The fields of OpenShift's Scheduler, and the one that its enhancement adds. */
export const schedulerSpec = z.looseObject({
  mastersSchedulable: z
    .boolean()
    .optional()
    .describe("Whether control-plane nodes take the pods of users. Defaults to false."),
  schedulingGroups: groupList(schedulerGroup, "Modes and further entries of groups.").optional(),
});
