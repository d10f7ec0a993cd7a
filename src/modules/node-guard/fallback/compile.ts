import { controlPlaneOf, type Installation } from "../../../core/installation/installation.ts";
import type { JsonObject } from "../../../core/json.ts";
import { checkDnsLabel } from "../../../core/kubernetes/names.ts";
import { NAMESPACE_NAME } from "../../../core/kubernetes/object.ts";
import type { ManagedObjects } from "../../../core/module/module.ts";
import type { View } from "../../../core/view/view.ts";
import { LIFECYCLE_IDENTITIES } from "../claims/node-labels.ts";
import type { Group } from "../groups/group.ts";
import { groupsOf } from "../groups/groups.ts";
import { readOverride } from "../groups/override.ts";
import { OVERRIDES } from "../groups/policy.ts";
import { GATE_ON, isOn, keepsFallback } from "../settings.ts";
import {
  actorExpression,
  MIRROR,
  mayAssign,
  POD_ACCOUNT,
  podExpression,
  quoted,
  selectorExpression,
} from "./cel.ts";

const API = "admissionregistration.k8s.io/v1";

/**
 * ValidatingAdmissionPolicies that refuse assignments and bindings to protected nodes, and labels that free such a
 * node, whether or not usher answers. The API server evaluates them first, so they are never stricter than the webhook:
 * they admit what they can't evaluate. That is: nodes that do not exist, new nodes, pods that only select protected
 * nodes, tolerations, the control plane's namespaces, and the account of a pod at its binding. With permissions in RBAC
 * they cover only the labels.
 */
export const fallback: ManagedObjects = {
  resources: [
    {
      group: "admissionregistration.k8s.io",
      version: "v1",
      resource: "validatingadmissionpolicies",
      kind: "ValidatingAdmissionPolicy",
      scope: "Cluster",
    },
    {
      group: "admissionregistration.k8s.io",
      version: "v1",
      resource: "validatingadmissionpolicybindings",
      kind: "ValidatingAdmissionPolicyBinding",
      scope: "Cluster",
    },
  ],
  why: "keep the fallback of protected groups",
  when: [GATE_ON],
  desired: (view, installation, gates, now) =>
    isOn(gates) && keepsFallback(installation) ? compileAll(view, installation, now) : [],
};

/** The objects of the fallback, whether or not usher manages it. */
export function compileAll(view: View, installation: Installation, now: number): JsonObject[] {
  return groupsOf(view, installation, undefined).flatMap((group) =>
    compileGroup(group, installation, isOverridden(group.name, view, now) ? "Audit" : "Deny"),
  );
}

/** The part of a group's assignments and bindings that its policies do not evaluate as usher does; empty if they cover all. */
export function leftOpen({ rbac, serviceAccountScope, newNodeGraceSeconds }: Group): string[] {
  return [
    ...(rbac ? ["rights in RBAC"] : []),
    ...(serviceAccountScope === "Exact" ? ["the service account of a pod that is bound"] : []),
    ...(newNodeGraceSeconds > 0 ? ["nodes that have just joined"] : []),
  ];
}

/**
 * The policies of a group with their bindings. A group that refuses nothing has none; one with permissions in RBAC has
 * only that of labels. With `named` they protect the nodes of these names, else those that the group selects.
 */
export function compileGroup(
  group: Group,
  installation: Installation,
  action: "Audit" | "Deny",
  named?: readonly string[],
): JsonObject[] {
  if (group.effectiveMode !== "Enable" || group.labelSelector.kind === "nothing") return [];
  const onNodes = {
    // With Deny and no protected node every pod would be refused.
    ...(named === undefined && {
      paramRef: { selector: group.selector, parameterNotFoundAction: "Allow" },
    }),
    matchResources: { namespaceSelector: guardedNamespaces(installation) },
  };
  const policies = [
    ...(group.rbac || named?.length === 0
      ? []
      : [
          { name: "assign", spec: assign(group, named), bound: onNodes },
          { name: "bind", spec: bind(group, named), bound: onNodes },
        ]),
    ...(group.protectNodeLabels ? [{ name: "labels", spec: labels(group, installation), bound: {} }] : []),
  ];
  return policies.flatMap(({ name: rule, spec, bound }) => {
    const name = `usher-node-guard-${slug(group.name)}-${rule}`;
    return [
      { apiVersion: API, kind: "ValidatingAdmissionPolicy", metadata: { name }, spec },
      {
        apiVersion: API,
        kind: "ValidatingAdmissionPolicyBinding",
        metadata: { name },
        spec: { policyName: name, validationActions: [action], ...bound },
      },
    ];
  });
}

function assign(group: Group, named: readonly string[] | undefined): JsonObject {
  const actor = actorExpression(group.entries);
  const pod = podExpression(group.entries, group.serviceAccountScope, POD_ACCOUNT);
  const vouched = actorExpression(group.emergency);
  return {
    ...common(["pods"]),
    ...(named === undefined && PROTECTED_NODE),
    matchConditions: [
      {
        name: "assigned-to-protected-node",
        expression: isProtected('object.spec.?nodeName.orValue("")', named),
      },
      { name: "not-a-mirror-pod", expression: `!(${MIRROR})` },
    ],
    validations: [
      {
        expression: `(${vouched}) || ((${actor}) && (${pod}))`,
        ...refusal(group, "USHER-G01", "pod may not be assigned to", "object.spec.nodeName", actor, pod),
      },
    ],
  };
}

function bind(group: Group, named: readonly string[] | undefined): JsonObject {
  const actor = actorExpression(group.entries);
  const pod = podExpression(group.entries, group.serviceAccountScope, undefined);
  return {
    ...common(["pods/binding", "bindings"]),
    ...(named === undefined && PROTECTED_NODE),
    matchConditions: [
      {
        name: "bound-to-protected-node",
        expression: isProtected('object.target.?name.orValue("")', named),
      },
    ],
    validations: [
      {
        expression: `(${actor}) && (${pod})`,
        ...refusal(group, "USHER-G02", "pod may not be bound to", "object.target.name", actor, pod),
      },
    ],
  };
}

/** A node that leaves the group by its labels. Identities that manage nodes may do it; usher's own account never may. */
function labels(group: Group, { namespace }: Installation): JsonObject {
  const listed = actorExpression(group.entries);
  const actor = group.rbac ? `${listed} || ${mayAssign(group)}` : listed;
  const own = `request.userInfo.username.startsWith(${quoted(`system:serviceaccount:${namespace}:`)})`;
  const leaves = quoted(` may not leave protected group ${JSON.stringify(group.name)}: user `);
  const advice = quoted(
    " is not authorised. Keep the labels, or ask a cluster administrator to authorise the user (USHER-G09)",
  );
  return {
    ...common(["nodes", "nodes/status"], "UPDATE"),
    matchConditions: [
      { name: "was-in-group", expression: selectorExpression(group.labelSelector, "oldObject") },
      { name: "leaves-group", expression: `!(${selectorExpression(group.labelSelector, "object")})` },
      {
        name: "not-by-the-life-of-nodes",
        expression: `!(request.userInfo.username in ${JSON.stringify(LIFECYCLE_IDENTITIES.map(({ username }) => username))})`,
      },
    ],
    validations: [
      {
        expression: `!(${own}) && (${actor})`,
        reason: "Forbidden",
        messageExpression: `"node-guard: node " + object.metadata.name + ${leaves} + request.userInfo.username + ${advice}`,
      },
    ],
  };
}

const PROTECTED_NODE: JsonObject = { paramKind: { apiVersion: "v1", kind: "Node" } };

/** Whether the node of a request is the one that the API server asks about now, or one of these. */
function isProtected(node: string, named: readonly string[] | undefined): string {
  return named === undefined ? `${node} == params.metadata.name` : `${node} in ${JSON.stringify(named)}`;
}

function common(resources: readonly string[], operation = "CREATE"): JsonObject {
  return {
    // An expression that fails refuses nothing: the webhook may admit the request.
    failurePolicy: "Ignore",
    matchConstraints: {
      resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: [operation], resources }],
    },
  };
}

/** Module, group, code and the unauthorised side: `learn` reads it in the audit log, because such a refusal never reaches usher. */
function refusal(
  { name }: Group,
  code: string,
  what: string,
  node: string,
  actor: string,
  pod: string,
): JsonObject {
  const group = quoted(`of protected group ${JSON.stringify(name)}:`);
  const advice = quoted(
    ` not authorised. Let the pod run on another node, or ask a cluster administrator to authorise it (${code})`,
  );
  const failing = `((${actor}) ? "" : " user " + request.userInfo.username + ((${pod}) ? "" : " and")) + ((${pod}) ? "" : " namespace " + request.namespace)`;
  return {
    reason: "Forbidden",
    messageExpression: `"node-guard: ${what} node " + ${node} + " " + ${group} + ${failing} + ${advice}`,
  };
}

/**
 * As for fail-closed hooks: neither usher's own namespace nor the control plane's, so that both recover with any lists;
 * nor an excluded one.
 */
function guardedNamespaces(installation: Installation): JsonObject {
  const { namespace, excluded = [] } = installation;
  const values = [...new Set([...controlPlaneOf(installation), namespace, ...excluded])].sort();
  return { matchExpressions: [{ key: NAMESPACE_NAME, operator: "NotIn", values }] };
}

/** The leader reconciles every few seconds: an override takes effect here slightly early, and never later than for the webhook. */
const LEAD_MS = 10_000;

export function isOverridden(group: string, view: View, now: number): boolean {
  for (const object of view.list(OVERRIDES)) {
    const override = readOverride(object);
    if (override?.group === group && override.from - LEAD_MS <= now && now < override.until) return true;
  }
  return false;
}

/** The name of a group as part of an object's name; two groups never share one. */
function slug(name: string): string {
  const lower = name.toLowerCase();
  if (checkDnsLabel(lower) === undefined && (lower === name || name === "ControlPlane")) return lower;
  const hex = [...new TextEncoder().encode(name)].map((byte) => byte.toString(16).padStart(2, "0"));
  return `x-${hex.join("")}`;
}
