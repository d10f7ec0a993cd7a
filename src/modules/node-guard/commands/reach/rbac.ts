import { type Json, type JsonObject, listAt, stringAt } from "../../../../core/json.ts";
import { nameOf, namespaceOf } from "../../../../core/kubernetes/object.ts";

/**
 * The subjects that may create pods, or bind them, by RBAC objects alone. Other authorizers, and members of
 * system:masters, are not included; permissions to impersonate and to change roles lead further.
 */

/** The RBAC objects of a cluster. */
export interface RbacObjects {
  readonly clusterRoles: readonly JsonObject[];
  readonly roles: readonly JsonObject[];
  readonly clusterRoleBindings: readonly JsonObject[];
  readonly roleBindings: readonly JsonObject[];
}

export interface RbacSubject {
  readonly kind: string;
  readonly name: string;
  /** Of a service account. */
  readonly namespace?: string;
}

export interface Grant {
  readonly subject: RbacSubject;
  /** `create pods`, `create pods/binding` */
  readonly may: readonly string[];
  /** `undefined`: in every namespace. */
  readonly namespace: string | undefined;
  /** `ClusterRoleBinding admins` */
  readonly by: string;
}

export interface Grants {
  readonly grants: readonly Grant[];
  /** Bindings whose role does not exist, or was not read. */
  readonly unresolved: readonly string[];
}

/** The ways to place a pod: directly, by a controller, or by a bind. */
const PLACING: readonly { readonly group: string; readonly resource: string }[] = [
  { group: "", resource: "pods" },
  { group: "", resource: "pods/binding" },
  { group: "", resource: "bindings" },
  { group: "", resource: "replicationcontrollers" },
  { group: "apps", resource: "daemonsets" },
  { group: "apps", resource: "deployments" },
  { group: "apps", resource: "replicasets" },
  { group: "apps", resource: "statefulsets" },
  { group: "batch", resource: "cronjobs" },
  { group: "batch", resource: "jobs" },
];

export function grantsOf(objects: RbacObjects): Grants {
  const roles = new Map<string, readonly string[]>();
  for (const role of objects.clusterRoles) roles.set(nameOf(role), rightsOf(role));
  for (const role of objects.roles) roles.set(`${namespaceOf(role)}/${nameOf(role)}`, rightsOf(role));
  const unresolved: string[] = [];
  const grants = [
    ...objects.clusterRoleBindings.map((binding) => ({ binding, namespace: undefined })),
    ...objects.roleBindings.map((binding) => ({ binding, namespace: namespaceOf(binding) })),
  ].flatMap(({ binding, namespace }): Grant[] => {
    const by = `${namespace === undefined ? "ClusterRoleBinding " : `RoleBinding ${namespace}/`}${nameOf(binding)}`;
    const role = stringAt(binding, "roleRef", "name") ?? "";
    const own = stringAt(binding, "roleRef", "kind") === "Role";
    const may = roles.get(own ? `${namespace ?? ""}/${role}` : role);
    if (may === undefined) unresolved.push(by);
    if (may === undefined || may.length === 0) return [];
    return listAt(binding, "subjects").flatMap((one) => {
      const subject = subjectOf(one, namespace);
      return subject === undefined ? [] : [{ subject, may, namespace, by }];
    });
  });
  return { grants, unresolved };
}

function rightsOf(role: JsonObject): string[] {
  const rules = listAt(role, "rules");
  return PLACING.filter(({ group, resource }) =>
    rules.some((rule) => grantsCreate(rule, group, resource)),
  ).map(({ group, resource }) => `create ${resource}${group === "" ? "" : `.${group}`}`);
}

/** As RBAC matches: `*`, `pods/*` is not a form it has, and `*` + `/binding` is. */
function grantsCreate(rule: Json, group: string, resource: string): boolean {
  const has = (field: string, ...wanted: readonly string[]) =>
    listAt(rule, field).some((one) => typeof one === "string" && wanted.includes(one));
  // A rule for named objects: a create has no name yet, but a bind does.
  if (listAt(rule, "resourceNames").length > 0 && resource !== "pods/binding") return false;
  const sub = resource.indexOf("/");
  const anySub = sub < 0 ? [] : [`*${resource.slice(sub)}`];
  return (
    has("verbs", "create", "*") && has("apiGroups", group, "*") && has("resources", resource, "*", ...anySub)
  );
}

function subjectOf(subject: Json, namespace: string | undefined): RbacSubject | undefined {
  const [kind, name] = [stringAt(subject, "kind"), stringAt(subject, "name")];
  if (kind === undefined || name === undefined) return undefined;
  if (kind !== "ServiceAccount") return { kind, name };
  const own = stringAt(subject, "namespace") ?? namespace;
  return own === undefined ? undefined : { kind, name, namespace: own };
}
