import type { Gates } from "../../../core/installation/gates.ts";
import {
  controlPlaneOf,
  exemptNamespaces,
  type Installation,
} from "../../../core/installation/installation.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import { hasMatchConditions } from "../../../core/kubernetes/versions.ts";
import type { WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Hook, Rule } from "../../../core/module/hook.ts";
import type { View } from "../../../core/view/view.ts";
import { ACCESS_SUBRESOURCES } from "../claims/access.ts";
import { ASSIGN_HOOK, PODS_HOOK } from "../claims/validate.ts";
import { leftOpen } from "../fallback/compile.ts";
import { fallbackInForce } from "../fallback/in-force.ts";
import { type Group, steers } from "../groups/group.ts";
import { nodesOf } from "../groups/group-nodes.ts";
import { Groups } from "../groups/groups.ts";
import type { GuardPolicy } from "../groups/policy.ts";
import { OVERRIDE_HOOK } from "../groups/record-grant.ts";
import { isOn, MODULE } from "../settings.ts";
import {
  ASSIGNED,
  labelsChanged,
  NOT_DELETED,
  namesByCondition,
  onNodes,
  onOtherNodes,
  PLACEMENT_CHANGED,
  SELECTS_NODES,
  STEERABLE_UPDATE,
  UNASSIGNED,
} from "./conditions.ts";

export const STEERING_HOOK = "node-guard-steering";

const CORE = { groups: [""], versions: ["v1"] } as const;
const PODS = { ...CORE, resources: ["pods"], scope: "Namespaced" } as const;

/** How long a bind, or a pod that names a node, waits for usher if the node is in a fail-closed group. */
const CLOSED_SECONDS = 3;

/**
 * The registered hooks: none while the gate is off, and none while no group has a mode. Only assignments of a pod to a
 * node are ever fail-closed. Overrides do not count: hooks know no clock.
 */
export function hooks(
  policies: readonly GuardPolicy[],
  view: View,
  installation: Installation,
  gates: Gates,
): readonly Hook[] {
  if (!isOn(gates)) return [];
  const groups = new Groups(policies, installation).at(view, undefined);
  const active = groups.filter(({ effectiveMode }) => effectiveMode !== "Disable");
  return [
    OVERRIDE_HOOK,
    ...steeringHooks(active, installation),
    ...validatingHooks(
      active,
      closedNodes(active, view, installation),
      hasMatchConditions(view),
      installation,
    ).map((hook): Hook => (active.length > 0 ? hook : { ...hook, rules: [] })),
  ];
}

/**
 * Nodes that no pod is assigned or bound to while usher does not answer: those of groups that the fallback does not
 * cover like usher. Other nodes never wait for usher. A node that joins while usher is down is not in the list: only
 * the fallback, which selects nodes by their labels, guards it, and for a group with `rbac` it covers only the labels.
 */
function closedNodes(active: readonly Group[], view: View, installation: Installation): string[] {
  const names = new Set<string>();
  for (const group of active)
    if (isClosed(group, view, installation)) for (const node of nodesOf(group, view)) names.add(nameOf(node));
  return [...names].sort();
}

function isClosed(group: Group, view: View, installation: Installation): boolean {
  if (group.effectiveMode !== "Enable" || group.failurePolicy === "Fail")
    return group.effectiveMode === "Enable";
  const judged = group.failurePolicy === "Ignore" || leftOpen(group).length === 0;
  return !judged || !fallbackInForce(group, view, installation);
}

function validatingHooks(
  active: readonly Group[],
  closed: readonly string[],
  conditional: boolean,
  installation: Installation,
): Hook[] {
  const enforced = active.some(({ effectiveMode }) => effectiveMode === "Enable");
  const common = {
    module: MODULE,
    phase: "validate",
    sideEffects: "NoneOnDryRun",
    failure: "open",
    // Inform only reports.
    tooLarge: enforced ? "deny" : "allow",
    timeoutSeconds: 2,
    namespaces: { except: [installation.namespace] },
  } as const;
  const waiting = {
    ...common,
    failure: "closed",
    timeoutSeconds: CLOSED_SECONDS,
    openShadow: true,
    staysClosed: true,
  } as const;
  /** One question, registered twice: fail-closed for nodes that wait for usher, fail-open for all others. */
  const assigning = (of: "pod" | "binding", hook: Pick<Hook, "name" | "rules" | "conditions">): Hook[] => {
    const { conditions = [] } = hook;
    const open = { ...common, ...hook };
    const parts = namesByCondition(closed);
    if (parts.length === 0) return [open];
    return [
      ...parts.map(
        (names, i): Hook => ({
          ...waiting,
          ...hook,
          ...(i === 0 ? {} : { name: `${hook.name}-${i + 1}`, askedAs: hook.name }),
          conditions: [...conditions, onNodes(of, names)],
        }),
      ),
      {
        ...open,
        name: `${hook.name}-others`,
        askedAs: hook.name,
        conditions: [...conditions, ...parts.map((names, i) => onOtherNodes(of, names, i))],
      },
    ];
  };
  const access = active.some(({ guardAccessOnProtectedNodes }) => guardAccessOnProtectedNodes);
  const labelled = active.filter(({ protectNodeLabels }) => protectNodeLabels);
  return [
    ...assigning("pod", {
      name: ASSIGN_HOOK,
      rules: [{ ...PODS, operations: ["CREATE"] }],
      conditions: [ASSIGNED],
    }),
    ...assigning("binding", {
      name: "node-guard-bind",
      rules: [{ ...PODS, resources: ["bindings", "pods/binding"], operations: ["CREATE"] }],
    }),
    {
      ...common,
      name: PODS_HOOK,
      rules: [{ ...PODS, operations: ["CREATE"] }],
      conditions: [UNASSIGNED, SELECTS_NODES],
    },
    {
      ...common,
      name: "node-guard-updates",
      rules: [{ ...PODS, operations: ["UPDATE"] }],
      conditions: [NOT_DELETED, PLACEMENT_CHANGED],
    },
    { ...common, name: "node-guard-templates", rules: templateRules(installation) },
    {
      ...common,
      name: "node-guard-nodes",
      // Without conditions heartbeats arrive here, too, and none may be denied.
      tooLarge: enforced && conditional ? "deny" : "allow",
      rules:
        labelled.length > 0
          ? [{ ...CORE, resources: ["nodes", "nodes/status"], operations: ["UPDATE"], scope: "Cluster" }]
          : [],
      conditions: [labelsChanged(labelled)],
    },
    {
      ...common,
      name: "node-guard-access",
      rules: access
        ? [
            {
              ...PODS,
              resources: ACCESS_SUBRESOURCES.map((name) => `pods/${name}`),
              operations: ["UPDATE", "CONNECT"],
            },
          ]
        : [],
    },
  ];
}

/**
 * Equal to the placement hooks except for their rules, so that one call serves both. The control plane's namespaces,
 * where pods are not placed, have a separate call.
 */
function steeringHooks(active: readonly Group[], installation: Installation): Hook[] {
  const exempt = exemptNamespaces(installation);
  const steering = active.some(steers);
  const common = {
    module: MODULE,
    phase: "mutate",
    failure: "open",
    // A pod that is not steered is refused only once it is to be bound, and evicts others before.
    tooLarge: "deny",
    timeoutSeconds: 2,
    sideEffects: "NoneOnDryRun",
    reinvocation: "IfNeeded",
    rules: steering
      ? [
          { ...PODS, operations: ["CREATE"] },
          {
            groups: ["apps"],
            versions: ["v1"],
            resources: ["daemonsets"],
            operations: ["CREATE", "UPDATE"],
            scope: "Namespaced",
          },
        ]
      : [],
  } as const satisfies Partial<Hook>;
  const system = controlPlaneOf(installation).filter(
    (name) => name !== installation.namespace && exempt.includes(name),
  );
  return [
    { ...common, name: STEERING_HOOK, namespaces: { except: exempt } },
    { ...common, name: `${STEERING_HOOK}-system`, askedAs: STEERING_HOOK, namespaces: { only: system } },
    {
      ...common,
      name: `${STEERING_HOOK}-updates`,
      announced: true,
      namespaces: { except: [installation.namespace] },
      rules: steering ? [{ ...PODS, operations: ["UPDATE"] }] : [],
      conditions: [STEERABLE_UPDATE],
    },
  ];
}

function templateRules({ workloads }: Installation): Rule[] {
  const groups = Map.groupBy(
    workloads.all.filter(({ template }) => template.length > 0),
    ({ group }) => group,
  );
  return [...groups].map(([group, kinds]: [string, WorkloadKind[]]) => ({
    groups: [group],
    versions: [...new Set(kinds.map(({ version }) => version))],
    resources: kinds.map(({ resource }) => resource),
    operations: ["CREATE", "UPDATE"],
    scope: "Namespaced",
  }));
}
