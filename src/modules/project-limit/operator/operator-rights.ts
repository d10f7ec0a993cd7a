import { type JsonObject, stringAt } from "../../../core/json.ts";
import { groupVersionOf } from "../../../core/kubernetes/object.ts";
import type { DeclaredRole, Right } from "../../../core/module/rights.ts";
import { named } from "../../../core/registration/module-rights.ts";
import { OWN_NAMES } from "../../../core/registration/names.ts";
import { projectRequestLimit } from "../kinds.ts";
import { OPERAND, OPERATOR } from "../operand-names.ts";
import { KUBE_CA, OPENSHIFT_PROJECTS } from "./aggregated.ts";
import { operandRoles } from "./operand-rights.ts";

const LIMITS = { group: projectRequestLimit.group, resource: projectRequestLimit.plural };

/** With server-side apply; if the API server enforces it, only a subject that may delete an object may change its owners. */
const KEEP = ["get", "create", "patch", "delete"];

/** The resource of each kind that the operator writes: `deployments` of `Deployment`. */
function resourceOf(kind: string): string {
  return `${kind.toLowerCase()}s`;
}

/** The permissions to manage an object, by its name. */
function keeping(object: JsonObject): Right {
  return {
    group: groupVersionOf(stringAt(object, "apiVersion")).group,
    resources: [resourceOf(stringAt(object, "kind") ?? "")],
    names: [stringAt(object, "metadata", "name") ?? ""],
    verbs: KEEP,
    why: "keep the operand",
    when: [],
  };
}

const CLUSTER: readonly Right[] = [
  {
    group: LIMITS.group,
    resources: [LIMITS.resource],
    verbs: ["get", "list"],
    why: "read what the operand shall be, and find objects of other names",
    when: [],
  },
  {
    group: LIMITS.group,
    resources: [`${LIMITS.resource}/status`],
    verbs: ["patch"],
    why: "say how far the operand is",
    when: [],
  },
  {
    group: "events.k8s.io",
    resources: ["events"],
    verbs: ["create", "patch"],
    why: "record that an object is ignored",
    when: [],
  },
  ...named(
    {
      group: "admissionregistration.k8s.io",
      resources: ["validatingwebhookconfigurations"],
      verbs: ["get"],
      why: "leave ProjectRequests to usher before the operand's webhook goes",
      when: [],
    },
    [OWN_NAMES.webhooks],
  ),
  ...named(
    {
      group: "apiregistration.k8s.io",
      resources: ["apiservices"],
      verbs: ["get"],
      why: "find out whether OpenShift's API server serves ProjectRequests",
      when: [],
    },
    [stringAt(OPENSHIFT_PROJECTS, "metadata", "name") ?? ""],
  ),
];

/** The permissions of the front proxy's role, which the operator binds. */
const GRANTED_BY_BINDING: readonly Right[] = named(
  {
    group: "",
    resources: ["configmaps"],
    verbs: ["get", "list", "watch"],
    why: "grant the operand the right to read how the front proxy is known",
    when: [],
  },
  ["extension-apiserver-authentication"],
);

const NAMESPACE: readonly Right[] = [
  ...named(
    {
      group: "",
      resources: ["configmaps"],
      verbs: ["get"],
      why: "find the API server's own authority",
      when: [],
    },
    [stringAt(KUBE_CA, "metadata", "name") ?? ""],
  ),
  {
    group: "discovery.k8s.io",
    resources: ["endpointslices"],
    verbs: ["list"],
    why: "register nothing before a pod is ready",
    when: [],
  },
  {
    group: "coordination.k8s.io",
    resources: ["leases"],
    names: [OPERATOR.name],
    verbs: ["get", "update"],
    why: "elect a leader",
    when: [],
  },
  { group: "coordination.k8s.io", resources: ["leases"], verbs: ["create"], why: "elect a leader", when: [] },
];

/** The operator's permissions, by name wherever possible: it can grant only what it has itself. */
export function operatorRoles(kept: readonly JsonObject[]): DeclaredRole[] {
  const role = (kind: DeclaredRole["kind"], rights: readonly Right[]): DeclaredRole => {
    const inside = kind === "Role";
    const objects = kept.filter(
      (one) => (stringAt(one, "metadata", "namespace") === OPERAND.namespace) === inside,
    );
    const granted = operandRoles(true)
      .filter((one) => one.kind === kind)
      .flatMap((one) => one.rights);
    return {
      kind,
      name: OPERATOR.name,
      own: true,
      account: OPERATOR.name,
      rights: [
        ...rights,
        ...objects.map(keeping),
        ...granted.map((right) => ({ ...right, why: `grant the operand the right to ${right.why}` })),
      ],
    };
  };
  return [role("ClusterRole", [...CLUSTER, ...GRANTED_BY_BINDING]), role("Role", NAMESPACE)];
}
