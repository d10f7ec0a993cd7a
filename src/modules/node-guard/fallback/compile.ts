import type { JsonObject } from "../../../core/json.ts";
import { checkDnsLabel } from "../../../core/kubernetes/names.ts";
import { controlPlaneOf, type Installation } from "../../../core/module/installation.ts";
import type { ManagedObjects } from "../../../core/module/module.ts";
import type { View } from "../../../core/view/view.ts";
import type { Group } from "../groups/group.ts";
import { groupsOf } from "../groups/groups.ts";
import { readOverride } from "../overrides/override.ts";
import { OVERRIDES } from "../policy/read-policy.ts";
import { GATE_ON, isOn, keepsFallback } from "../settings.ts";
import { actorExpression, MIRROR, POD_ACCOUNT, podExpression, quoted } from "./cel.ts";

const API = "admissionregistration.k8s.io/v1";

/**
 * ValidatingAdmissionPolicies that refuse assignments and bindings to protected nodes while usher is away. The API server always asks
 * them, so they are never stricter than the webhook: what they can't judge, they admit. That is: nodes that do not exist, nodes that
 * are new, pods that only select protected nodes, tolerations, node labels, the control plane's namespaces, and the account of a pod
 * at its binding.
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

/** What the fallback consists of, whether or not usher keeps it. */
export function compileAll(view: View, installation: Installation, now: number): JsonObject[] {
  return groupsOf(view, installation, undefined).flatMap((group) =>
    compileGroup(group, installation, isOverridden(group.name, view, now) ? "Audit" : "Deny"),
  );
}

/** Both policies of a group with their bindings. A group that refuses nothing has none, nor has one whose rights are in RBAC. */
export function compileGroup(
  group: Group,
  installation: Installation,
  action: "Audit" | "Deny",
): JsonObject[] {
  if (group.effectiveMode !== "Enable" || group.rbac || group.labelSelector.kind === "nothing") return [];
  return [assign(group), bind(group)].flatMap((spec, i) => {
    const name = `usher-node-guard-${slug(group.name)}-${i === 0 ? "assign" : "bind"}`;
    return [
      { apiVersion: API, kind: "ValidatingAdmissionPolicy", metadata: { name }, spec },
      {
        apiVersion: API,
        kind: "ValidatingAdmissionPolicyBinding",
        metadata: { name },
        spec: {
          policyName: name,
          // With Deny and no protected node every pod would be refused.
          paramRef: { selector: group.selector, parameterNotFoundAction: "Allow" },
          validationActions: [action],
          matchResources: { namespaceSelector: guardedNamespaces(installation) },
        },
      },
    ];
  });
}

function assign(group: Group): JsonObject {
  const pod = podExpression(group.entries, group.serviceAccountScope, POD_ACCOUNT);
  const vouched = actorExpression(group.emergency);
  return {
    ...common(["pods"]),
    matchConditions: [
      {
        name: "assigned-to-protected-node",
        expression: 'object.spec.?nodeName.orValue("") == params.metadata.name',
      },
      { name: "not-a-mirror-pod", expression: `!(${MIRROR})` },
    ],
    validations: [
      {
        expression: `(${vouched}) || ((${actorExpression(group.entries)}) && (${pod}))`,
        ...refusal(group, "USHER-G01"),
      },
    ],
  };
}

function bind(group: Group): JsonObject {
  const pod = podExpression(group.entries, group.serviceAccountScope, undefined);
  return {
    ...common(["pods/binding", "bindings"]),
    matchConditions: [
      {
        name: "bound-to-protected-node",
        expression: 'object.target.?name.orValue("") == params.metadata.name',
      },
    ],
    validations: [
      { expression: `(${actorExpression(group.entries)}) && (${pod})`, ...refusal(group, "USHER-G02") },
    ],
  };
}

function common(resources: readonly string[]): JsonObject {
  return {
    // An expression that fails refuses nothing: the webhook may admit the request.
    failurePolicy: "Ignore",
    paramKind: { apiVersion: "v1", kind: "Node" },
    matchConstraints: {
      resourceRules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["CREATE"], resources }],
    },
  };
}

function refusal({ name }: Group, code: string): JsonObject {
  const text = `belongs to protected group ${JSON.stringify(name)}; the subject that assigns the pod and the pod's namespace must be authorised. Remove what places the pod there, or ask the cluster administrator (${code})`;
  return {
    reason: "Forbidden",
    messageExpression: `"pods of " + request.namespace + " may not run on node " + params.metadata.name + ": it " + ${quoted(text)}`,
  };
}

/** As for closed hooks: neither usher's own namespace nor the control plane's, so that both recover whatever the lists say; nor an excluded one. */
function guardedNamespaces(installation: Installation): JsonObject {
  const { namespace, excluded = [] } = installation;
  const values = [...new Set([...controlPlaneOf(installation), namespace, ...excluded])].sort();
  return { matchExpressions: [{ key: "kubernetes.io/metadata.name", operator: "NotIn", values }] };
}

/** The leader looks every few seconds: an override counts here a little before its time, and never later than for the webhook. */
const LEAD_MS = 10_000;

function isOverridden(group: string, view: View, now: number): boolean {
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
