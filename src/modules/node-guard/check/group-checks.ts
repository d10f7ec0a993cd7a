import { controlPlaneOf, type Installation } from "../../../core/installation/installation.ts";
import { at, type JsonObject, stringAt } from "../../../core/json.ts";
import { admittedAtRegistration } from "../../../core/kubernetes/node-label-keys.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import { contradictorySelector } from "../../../core/policy/empty-selector.ts";
import { PROBLEM } from "../../../core/policy/problem.ts";
import { OWN_NAMES } from "../../../core/registration/names.ts";
import type { View } from "../../../core/view/view.ts";
import { leftOpen } from "../fallback/compile.ts";
import { fallbackInForce } from "../fallback/in-force.ts";
import { missingEmergency } from "../groups/administrators.ts";
import { CONTROL_PLANE, type Group } from "../groups/group.ts";
import { nodesOf } from "../groups/group-nodes.ts";
import { agreement, type Groups } from "../groups/groups.ts";
import { podMatches } from "../groups/principals.ts";
import { builtInOf, keepsFallback, OPENSHIFT_RESOURCE } from "../settings.ts";
import { SELECTS_ALL } from "./inline-policy.ts";
import { unauthorizedDaemonSets, violations } from "./violations.ts";

/** The inputs of a group's check. */
export interface GroupContext {
  readonly groups: Groups;
  readonly all: readonly Group[];
  readonly view: View;
  readonly installation: Installation;
}

/** One rule on groups. */
export interface GroupCheck {
  readonly name: string;
  readonly severity: "error" | "warning";
  /** @default that of its severity */
  readonly code?: string;
  /** The field of the group that is wrong. */
  readonly field: string;
  /** The problem and the remedy; `undefined` if there is none. */
  readonly find: (group: Group, context: GroupContext) => string | undefined;
}

const SCHEDULER = "system:kube-scheduler";

export const GROUP_CHECKS: readonly GroupCheck[] = [
  {
    name: "all-nodes",
    severity: "error",
    field: "labelSelector",
    find: ({ labelSelector, acknowledge }) =>
      labelSelector.kind === "everything" && !acknowledge.includes("AllNodes") ? SELECTS_ALL : undefined,
  },
  {
    name: "contradictory-selector",
    severity: "warning",
    code: PROBLEM.matchesNothing,
    field: "labelSelector",
    find: ({ labelSelector }) => contradictorySelector(labelSelector, [])[0]?.message,
  },
  {
    name: "no-other-nodes",
    severity: "error",
    field: "mode",
    find: (group, { view }) => {
      if (group.mode !== "Enable" || group.acknowledge.includes("NoOtherNodes")) return undefined;
      const schedulable = [...view.list("nodes")].filter(
        (node) => at(node, "spec", "unschedulable") !== true,
      );
      const all = schedulable.length > 0 && schedulable.every((node) => isIn(group, node));
      return all
        ? `Enable would protect every schedulable node (${schedulable.length}): other pods could run nowhere; if that is meant, add NoOtherNodes to acknowledge`
        : undefined;
    },
  },
  {
    name: "consistent",
    severity: "error",
    field: "mode",
    find: ({ name, mode }, { groups: { consistency, mastersSchedulable } }) => {
      if (name !== CONTROL_PLANE || mode !== "Enable") return undefined;
      const { consistent, message } = agreement(mode, consistency, mastersSchedulable);
      return consistent ? undefined : `${message}: they contradict each other; change one of them`;
    },
  },
  {
    name: "usher-itself",
    severity: "error",
    field: "mode",
    find: (group, { installation: { namespace } }) =>
      group.mode === "Enable" && podMatches(namespace, OWN_NAMES.account, group) === undefined
        ? `usher itself is not authorised: add ${namespace}/${OWN_NAMES.account} to workloads before Enable`
        : undefined,
  },
  {
    name: "fallback",
    severity: "error",
    field: "failurePolicy",
    find: (group, { view, installation }) =>
      group.failurePolicy === "Ignore" &&
      group.effectiveMode === "Enable" &&
      !fallbackInForce(group, view, installation)
        ? "Ignore is accepted only while the fallback is in force: set spec.modules.node-guard.fallback in usher's configuration, and Ignore once the policies are there"
        : undefined,
  },
  {
    name: "waits-for-usher",
    severity: "warning",
    field: "mode",
    find: (group, { view, installation }) => {
      if (group.effectiveMode !== "Enable" || group.failurePolicy === "Ignore") return undefined;
      const because =
        group.failurePolicy === "Fail"
          ? "failurePolicy is Fail"
          : !keepsFallback(installation)
            ? "spec.modules.node-guard.fallback is off in usher's configuration"
            : leftOpen(group).length > 0
              ? `policies of the API server can't judge ${leftOpen(group).join(", ")}`
              : undefined;
      const nodes = because === undefined ? 0 : [...nodesOf(group, view)].length;
      return because === undefined
        ? undefined
        : `while usher is away, no pod can be assigned or bound to nodes of the group (${nodes} now), authorised or not: ${because}`;
    },
  },
  {
    // Hooks can't name namespaces by a prefix, and which the platform has, differs from cluster to cluster.
    name: "platform-namespaces",
    severity: "warning",
    field: "mode",
    find: ({ mode }, { view, installation }) =>
      mode === "Enable" &&
      view.served(OPENSHIFT_RESOURCE) &&
      !controlPlaneOf(installation).some((name) => name.startsWith("openshift-"))
        ? "namespaces of OpenShift are not in controlPlaneNamespaces of usher's configuration: while usher is away, their pods can't be bound either"
        : undefined,
  },
  {
    name: "emergency",
    severity: "warning",
    field: "emergencyUsers",
    find: (group, { view, installation }) =>
      group.mode === "Disable" ? undefined : missingEmergency(group, builtInOf(installation, view)),
  },
  {
    name: "kubelet-labels",
    severity: "warning",
    field: "labelSelector",
    find: ({ labelSelector }) => {
      const keys =
        labelSelector.kind === "requirements" ? labelSelector.requirements.map(({ key }) => key) : [];
      const own = keys.filter((key) => admittedAtRegistration(key, false));
      return own.length === 0
        ? undefined
        : `a kubelet may change the label ${own.join(", ")} of its own node`;
    },
  },
  {
    name: "scheduler",
    severity: "warning",
    field: "authorizedUsers",
    find: ({ index, entries }) => {
      if (entries.length === 0) return "no entry: nothing may run on nodes of the group";
      return index.actor(SCHEDULER, []) === undefined
        ? `does not list ${SCHEDULER}: the scheduler can't bind pods to nodes of the group`
        : undefined;
    },
  },
  {
    name: "overlap",
    severity: "warning",
    field: "labelSelector",
    find: (group, { view, all }) => {
      for (const node of view.list("nodes")) {
        const other = all.find((one) => one.name !== group.name && isIn(one, node));
        if (other !== undefined && isIn(group, node))
          return `node ${nameOf(node)} is in group ${other.name} as well: pods there need both`;
      }
      return undefined;
    },
  },
  {
    name: "no-node",
    severity: "warning",
    field: "labelSelector",
    find: (group, { view }) => {
      if (view.count("nodes") === 0) return undefined;
      for (const node of view.list("nodes")) if (isIn(group, node)) return undefined;
      return "selects no node now";
    },
  },
  {
    name: "violations",
    severity: "warning",
    field: "mode",
    find: (group, { view }) => {
      if (group.mode === "Disable") return undefined;
      const found = violations(group, view);
      if (found.length === 0) return undefined;
      return found.length === 1
        ? `1 pod on nodes of the group is not authorised: ${shown(found)}; it keeps running, and Enable refuses new pods like it`
        : `${found.length} pods on nodes of the group are not authorised, such as ${shown(found)}; they keep running, and Enable refuses new pods like them`;
    },
  },
  {
    name: "daemon-sets",
    severity: "warning",
    field: "mode",
    find: (group, { view, installation }) => {
      if (group.mode === "Disable") return undefined;
      const found = unauthorizedDaemonSets(group, view, installation);
      return found.length === 0
        ? undefined
        : `DaemonSets with hostNetwork outside the control plane's namespaces are not authorised, such as ${shown(found)}: nodes of the group may need them, as they need a CNI`;
    },
  },
];

function shown(objects: readonly JsonObject[]): string {
  const names = objects.map((one) => `${stringAt(one, "metadata", "namespace") ?? ""}/${nameOf(one)}`);
  return names.sort().slice(0, 3).join(", ");
}

export function isIn(group: Group, node: JsonObject): boolean {
  return matches(group.labelSelector, labelsOf(node));
}
