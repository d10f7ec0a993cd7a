import type { JsonObject } from "../json.ts";
import type { Gates } from "../module/gates.ts";
import type { Installation } from "../module/installation.ts";
import { type Module, readsOf } from "../module/module.ts";
import type { CustomResource, Kind } from "../policy/kind.ts";

const API = "rbac.authorization.k8s.io";
const READ = ["get", "list", "watch"];
const WRITE = ["create", "update", "patch", "delete", "deletecollection"];

/** Usher's own account, in its own namespace. */
const ACCOUNT = "usher";

/**
 * What usher itself may do to judge, and what people may do with its policies. Usher reads what modules declare and writes the
 * status of its own kinds and events, nothing else. What it needs for its own installation is in `ownAccess`.
 */
export function accessObjects(
  modules: readonly Module[],
  installation: Installation,
  gates?: Gates,
): JsonObject[] {
  const kinds = modules.flatMap((module) => module.kinds).filter(({ standing }) => standing === "resource");
  const { namespace } = installation;
  return [
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: ACCOUNT, namespace } },
    clusterRole(ACCOUNT, ownRules(modules, kinds, installation, gates)),
    {
      apiVersion: `${API}/v1`,
      kind: "ClusterRoleBinding",
      metadata: { name: ACCOUNT },
      roleRef: { apiGroup: API, kind: "ClusterRole", name: ACCOUNT },
      subjects: [{ kind: "ServiceAccount", name: ACCOUNT, namespace }],
    },
    // A kind of another owner is granted by that owner.
    ...userRoles(kinds.filter(({ takeOver }) => takeOver !== "never")),
  ];
}

interface Grant {
  readonly group: string;
  readonly resource: string;
}

function ownRules(
  modules: readonly Module[],
  kinds: readonly Kind[],
  installation: Installation,
  gates: Gates | undefined,
): JsonObject[] {
  const reads = readsOf(modules, gates);
  const withStatus = kinds.filter(({ versions }) => versions.some(({ status }) => status !== undefined));
  return [
    ...grants([...reads, ...kinds.map(resourceOf)], READ),
    ...grants(
      withStatus.map(({ group, plural }) => ({ group, resource: `${plural}/status` })),
      ["update", "patch"],
    ),
    ...stateGrants(modules),
    ...furtherGrants(modules, installation),
    // An event lives beside the object that it is about, which may be in any namespace. Patch counts up a repeated one.
    ...grants([{ group: "events.k8s.io", resource: "events" }], ["create", "patch"]),
    ...(modules.some(({ accessReviews }) => accessReviews === true)
      ? grants([{ group: "authorization.k8s.io", resource: "subjectaccessreviews" }], ["create"])
      : []),
  ];
}

/** State kinds are usher's own: it reads them, and writes them as declared. */
function stateGrants(modules: readonly Module[]): JsonObject[] {
  return modules.flatMap(({ stateKinds = [] }) =>
    stateKinds.flatMap((kind) => [
      ...grants([resourceOf(kind)], [...READ, ...kind.verbs]),
      ...(kind.versions.some(({ status }) => status !== undefined)
        ? grants([{ group: kind.group, resource: `${kind.plural}/status` }], ["update", "patch"])
        : []),
    ]),
  );
}

/** What modules need or write now and then, each verb with all its resources. */
function furtherGrants(modules: readonly Module[], installation: Installation): JsonObject[] {
  const access = modules.flatMap((module) => module.access?.(installation) ?? []);
  return (["get", "list", "patch"] as const).flatMap((verb) =>
    grants(
      access.filter(({ verbs }) => verbs.includes(verb)),
      [verb],
    ),
  );
}

/**
 * Reading namespaced policies is harmless to subjects that may read their namespace, so it joins the roles that they have
 * already. Writing does not join `edit` or `admin`: a kind may be namespaced and yet act on nodes, or write what a tenant
 * may not, so it is granted by binding `usher-policies-edit`, and for kinds that act on the whole cluster
 * `usher-cluster-policies-edit`: a subject that may write these in any namespace affects all. Cluster-scoped kinds are in the roles for
 * the whole cluster, which aggregate to none: they rule over other people's namespaces, so an administrator binds them.
 */
function userRoles(kinds: readonly Kind[]): JsonObject[] {
  const namespaced = kinds.filter(({ scope }) => scope === "Namespaced");
  const cluster = kinds.filter(({ scope }) => scope === "Cluster").map(resourceOf);
  const apart = kinds.flatMap((kind) =>
    kind.grantedBy === undefined ? [] : [{ kind, role: kind.grantedBy }],
  );
  const joint = kinds.filter(({ scope, grantedBy }) => scope === "Cluster" && grantedBy === undefined);
  const own = namespaced.filter(({ reach }) => reach === undefined).map(resourceOf);
  const wide = [
    ...joint.map(resourceOf),
    ...namespaced.filter(({ reach }) => reach === "Cluster").map(resourceOf),
  ];
  const joins = Object.fromEntries(
    ["view", "edit", "admin"].map((role) => [`${API}/aggregate-to-${role}`, "true"]),
  );
  const role = (name: string, resources: readonly Grant[], verbs: readonly string[], labels?: JsonObject) =>
    resources.length === 0 ? [] : [clusterRole(name, grants(resources, verbs), labels)];
  return [
    ...role("usher-policies-view", namespaced.map(resourceOf), READ, joins),
    ...role("usher-policies-edit", own, [...READ, ...WRITE]),
    ...role("usher-cluster-policies-view", cluster, READ),
    ...role("usher-cluster-policies-edit", wide, [...READ, ...WRITE]),
    ...apart.flatMap(({ kind, role: name }) => role(name, [resourceOf(kind)], [...READ, ...WRITE])),
  ];
}

function resourceOf({ group, plural }: CustomResource): Grant {
  return { group, resource: plural };
}

function clusterRole(name: string, rules: readonly JsonObject[], labels?: JsonObject): JsonObject {
  return {
    apiVersion: `${API}/v1`,
    kind: "ClusterRole",
    metadata: { name, ...(labels === undefined ? {} : { labels }) },
    rules,
  };
}

/** One rule a group, groups and resources in alphabetical order: the same declarations give the same text. */
function grants(wanted: readonly Grant[], verbs: readonly string[]): JsonObject[] {
  const groups = [...new Set(wanted.map(({ group }) => group))].sort();
  return groups.map((group) => {
    const resources = wanted.filter((one) => one.group === group).map(({ resource }) => resource);
    return { apiGroups: [group], resources: [...new Set(resources)].sort(), verbs };
  });
}
