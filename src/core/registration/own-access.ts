import type { JsonObject } from "../json.ts";
import type { Module } from "../module/module.ts";
import { kindResource } from "../policy/kind.ts";
import { type Declarations, registeredResources } from "./custom-resources.ts";
import { OWN_NAMES } from "./names.ts";

const API = "rbac.authorization.k8s.io";

/**
 * What usher may do with its own installation, beside reading and judging. Whatever has a fixed name is granted by that name. Usher
 * creates by server-side apply: the API server checks that as `create` with the name, where a POST has none that a rule could hold.
 * It can't change its own roles: the anchor is bound to nobody. An attacker that controls usher has its webhooks all the same, which may
 * be registered for everything: its namespace is to be guarded like the control plane's.
 */
export function ownAccess(declarations: Declarations): JsonObject[] {
  const { modules, installation } = declarations;
  const { namespace } = installation;
  const kinds = registeredResources(declarations);
  const predecessors = modules.flatMap((module) => module.predecessors ?? []);
  const { registration, account } = OWN_NAMES;
  return [
    {
      apiVersion: `${API}/v1`,
      kind: "ClusterRole",
      metadata: { name: registration },
      rules: [
        ...named("admissionregistration.k8s.io", WEBHOOKS, [OWN_NAMES.webhooks], OWN),
        ...named(
          "admissionregistration.k8s.io",
          WEBHOOKS,
          predecessors.map(({ name }) => name),
          ["get"],
        ),
        ...named("apiextensions.k8s.io", ["customresourcedefinitions"], kinds.map(kindResource), KEEP),
        ...managedRules(modules),
        ...named(API, ["clusterroles"], [OWN_NAMES.anchor], ["get", "patch", "delete"]),
        // The anchor's owner.
        ...named("", ["namespaces"], [namespace], ["get"]),
      ],
    },
    binding("ClusterRoleBinding", registration, { kind: "ClusterRole", name: registration }, namespace),
    {
      apiVersion: `${API}/v1`,
      kind: "Role",
      metadata: { name: account, namespace },
      rules: [
        ...named("", ["secrets"], [OWN_NAMES.certificates], [...KEEP, "update"]),
        // Each replica publishes its tallies under its own name, and the leader reads and at last buries them.
        { apiGroups: [""], resources: ["configmaps"], verbs: ["get", "list", "create", "patch", "delete"] },
        ...named("coordination.k8s.io", ["leases"], [OWN_NAMES.lease], ["get", "update"]),
        { apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: ["create"] },
        // Whether the Service leads to a replica that is ready: before that no webhook is registered.
        { apiGroups: ["discovery.k8s.io"], resources: ["endpointslices"], verbs: ["list"] },
      ],
    },
    binding("RoleBinding", account, { kind: "Role", name: account }, namespace),
  ];
}

/** Names of managed objects follow from policies, so the rights to them are by resource; removed with the role that has them. */
function managedRules(modules: readonly Module[]): JsonObject[] {
  const resources = modules.flatMap(({ managed }) => managed?.resources ?? []);
  return [...Map.groupBy(resources, ({ group }) => group)].map(([group, all]) => ({
    apiGroups: [group],
    resources: [...new Set(all.map(({ resource }) => resource))].sort(),
    verbs: [...KEEP, "list", "delete"],
  }));
}

const WEBHOOKS = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"];
const KEEP = ["get", "create", "patch"];
/** For what has an owner: where the API server enforces it, as OpenShift's does, only who may delete an object may change its owners. */
const OWN = [...KEEP, "delete"];

/** A rule without names would be one for all names, so where there are none there is no rule. */
function named(
  group: string,
  resources: readonly string[],
  names: readonly string[],
  verbs: readonly string[],
): JsonObject[] {
  if (names.length === 0) return [];
  return [{ apiGroups: [group], resources, resourceNames: [...new Set(names)].sort(), verbs }];
}

function binding(
  kind: "ClusterRoleBinding" | "RoleBinding",
  name: string,
  role: { readonly kind: string; readonly name: string },
  namespace: string,
): JsonObject {
  return {
    apiVersion: `${API}/v1`,
    kind,
    metadata: { name, ...(kind === "RoleBinding" ? { namespace } : {}) },
    roleRef: { apiGroup: API, ...role },
    subjects: [{ kind: "ServiceAccount", name: OWN_NAMES.account, namespace }],
  };
}
