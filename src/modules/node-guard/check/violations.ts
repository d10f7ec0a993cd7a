import { controlPlaneOf, type Installation } from "../../../core/installation/installation.ts";
import { at, type JsonObject, stringAt } from "../../../core/json.ts";
import { annotationsOf, isBeingDeleted, labelsOf, namespaceOf } from "../../../core/kubernetes/object.ts";
import { hasEnded } from "../../../core/kubernetes/pod-state.ts";
import { matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { Read } from "../../../core/module/module.ts";
import type { View } from "../../../core/view/view.ts";
import type { Group } from "../groups/group.ts";
import { podMatches } from "../groups/principals.ts";
import { GATE_ON } from "../settings.ts";

/** Files a pod under its node. */
export const BY_NODE = "node-guard-node";

/** Running pods by node, for reports: only the leader makes them. */
export const WORKLOAD_READS: readonly Read[] = [
  {
    resource: "pods",
    group: "",
    version: "v1",
    kind: "Pod",
    scope: "Namespaced",
    keep: [
      ["spec", "nodeName"],
      ["spec", "serviceAccountName"],
      ["status", "phase"],
      ["metadata", "annotations", "kubernetes.io/config.mirror"],
    ],
    indexes: [{ name: BY_NODE, values: (pod) => [stringAt(pod, "spec", "nodeName") ?? ""] }],
    leaderOnly: true,
    optional: true,
    when: [GATE_ON],
    why: "report pods that run where they may not",
  },
  {
    resource: "daemonsets",
    group: "apps",
    version: "v1",
    kind: "DaemonSet",
    scope: "Namespaced",
    keep: [
      ["spec", "template", "spec", "hostNetwork"],
      ["spec", "template", "spec", "serviceAccountName"],
    ],
    leaderOnly: true,
    optional: true,
    when: [GATE_ON],
    why: "report DaemonSets that a group would keep off its nodes",
  },
];

/** Unauthorised pods on nodes of a group. They are only reported. */
export function violations(group: Group, view: View): JsonObject[] {
  const found: JsonObject[] = [];
  for (const node of view.list("nodes")) {
    if (!matches(group.labelSelector, labelsOf(node))) continue;
    for (const pod of view.lookup("pods", BY_NODE, stringAt(node, "metadata", "name") ?? ""))
      if (isViolation(pod, group)) found.push(pod);
  }
  return found;
}

function isViolation(pod: JsonObject, group: Group): boolean {
  if (hasEnded(pod) || isBeingDeleted(pod)) return false;
  const account = stringAt(pod, "spec", "serviceAccountName") ?? "";
  // A mirror pod: its manifest is on the node itself. With an account it is a pod that got the annotation from a
  // Binding.
  if (account === "" && at(annotationsOf(pod), "kubernetes.io/config.mirror") !== undefined) return false;
  return podMatches(namespaceOf(pod), account, group) === undefined;
}

/** DaemonSets that a node may need before any other pod, and that the group would keep off its nodes. */
export function unauthorizedDaemonSets(group: Group, view: View, installation: Installation): JsonObject[] {
  const exempt = [...controlPlaneOf(installation), installation.namespace];
  return [...view.list("daemonsets.apps")].filter((one) => {
    const template = at(one, "spec", "template", "spec");
    if (at(template, "hostNetwork") !== true || exempt.includes(namespaceOf(one))) return false;
    return podMatches(namespaceOf(one), stringAt(template, "serviceAccountName"), group) === undefined;
  });
}
