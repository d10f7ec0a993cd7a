import type { JsonObject } from "../json.ts";
import type { Declarations, Module } from "../module/module.ts";
import { type DeclaredRole, grantedRights, type Right, ruleOf } from "../module/rights.ts";
import type { Kind } from "../policy/kind.ts";
import { judgingRights, policyReadingRights, policyRights, READ, resourceKinds } from "./module-rights.ts";
import { OWN_NAMES } from "./names.ts";
import { ownRoles } from "./own-access.ts";

const API = "rbac.authorization.k8s.io";
const WRITE = ["create", "update", "patch", "delete", "deletecollection"];

const EVENTS: Right = {
  group: "events.k8s.io",
  resources: ["events"],
  verbs: ["create", "patch"],
  // An event is in the namespace of the object that it is about, which may be any.
  why: "record events about objects, and count repeated ones",
  when: [],
};

/**
 * Usher's own permissions for evaluation, and users' permissions on its policies. Usher reads what modules declare and
 * writes only the status of its own kinds and events. Permissions on its own installation are in `ownRoles`.
 */
export function accessRoles(modules: readonly Module[]): DeclaredRole[] {
  return [
    {
      kind: "ClusterRole",
      name: OWN_NAMES.account,
      own: true,
      rights: [EVENTS, ...policyReadingRights(modules), ...modules.flatMap(judgingRights)],
    },
    ...userRoles(modules),
  ];
}

/** Every role of an installation in a cluster. */
export function declaredRoles(modules: readonly Module[]): DeclaredRole[] {
  return [...accessRoles(modules), ...ownRoles(modules)];
}

/** Usher's account and the roles, with the permissions of the installation's configuration. */
export function accessObjects(declarations: Declarations): JsonObject[] {
  const { namespace } = declarations.installation;
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: OWN_NAMES.account, namespace } },
    ...roleObjects(accessRoles(declarations.modules), declarations),
  ];
}

/** Roles with their bindings. A user-facing role without rules is omitted. */
export function roleObjects(roles: readonly DeclaredRole[], declarations: Declarations): JsonObject[] {
  const { namespace } = declarations.installation;
  return roles.flatMap(({ kind, name, labels, own, account = OWN_NAMES.account, rights }) => {
    const rules = grantedRights(rights, declarations).map(ruleOf);
    if (rules.length === 0) return [];
    const place = kind === "Role" ? { namespace } : {};
    const role = {
      apiVersion: `${API}/v1`,
      kind,
      metadata: { name, ...place, ...(labels === undefined ? {} : { labels }) },
      rules,
    };
    if (!own) return [role];
    return [
      role,
      {
        apiVersion: `${API}/v1`,
        kind: `${kind}Binding`,
        metadata: { name, ...place },
        roleRef: { apiGroup: API, kind, name },
        subjects: [{ kind: "ServiceAccount", name: account, namespace }],
      },
    ];
  });
}

/**
 * Reading namespaced policies is harmless for subjects that may read their namespace, so it is aggregated to their
 * roles. Writing is not aggregated to `edit` or `admin`: a kind may be namespaced and yet act on nodes, or write fields
 * that a tenant may not, so it is granted by binding `usher-policies-edit`, and for kinds that act on the whole cluster
 * `usher-cluster-policies-edit`: a subject that may write these in any namespace affects all. Cluster-scoped kinds are
 * in the roles for the whole cluster, which are not aggregated: they act on other users' namespaces, so an
 * administrator binds them.
 */
function userRoles(modules: readonly Module[]): DeclaredRole[] {
  const role = (name: string, verbs: readonly string[], has: (kind: Kind) => boolean, labels?: Labels) => {
    const rights = modules.flatMap((module) => policyRights(module, grantedKinds(module).filter(has), verbs));
    const declared: DeclaredRole = {
      kind: "ClusterRole",
      name,
      own: false,
      rights,
      ...(labels === undefined ? {} : { labels }),
    };
    return rights.length === 0 ? [] : [declared];
  };
  const namespaced = ({ scope }: Kind) => scope === "Namespaced";
  const wide = ({ scope, reach, grantedBy }: Kind) =>
    scope === "Cluster" ? grantedBy === undefined : reach === "Cluster";
  const apart = new Set(modules.flatMap(grantedKinds).flatMap(({ grantedBy }) => grantedBy ?? []));
  const write = [...READ, ...WRITE];
  return [
    ...role("usher-policies-view", READ, namespaced, JOINS),
    ...role("usher-policies-edit", write, (kind) => namespaced(kind) && kind.reach === undefined),
    ...role("usher-cluster-policies-view", READ, (kind) => !namespaced(kind)),
    ...role("usher-cluster-policies-edit", write, wide),
    ...[...apart].flatMap((name) => role(name, write, ({ grantedBy }) => grantedBy === name)),
  ];
}

type Labels = Readonly<Record<string, string>>;

const JOINS = Object.fromEntries(
  ["view", "edit", "admin"].map((role) => [`${API}/aggregate-to-${role}`, "true"]),
);

/** A kind of another owner is granted by that owner, and one of a module that is off by no role. */
function grantedKinds(module: Module): Kind[] {
  return resourceKinds(module).filter(({ takeOver, ignored }) => takeOver !== "never" && ignored !== true);
}
