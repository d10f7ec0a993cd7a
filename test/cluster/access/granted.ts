import type { JsonObject } from "../../../src/core/json.ts";

const RBAC = "rbac.authorization.k8s.io";

/** The ClusterRole and binding that grant one user something on namespaces. */
export function grantedNamespaces(user: string, ...verbs: readonly string[]): JsonObject[] {
  const metadata = { name: `namespaces-of-${user}` };
  return [
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRole",
      metadata,
      rules: [{ apiGroups: [""], resources: ["namespaces"], verbs }],
    },
    {
      apiVersion: `${RBAC}/v1`,
      kind: "ClusterRoleBinding",
      metadata,
      roleRef: { apiGroup: RBAC, kind: "ClusterRole", name: metadata.name },
      subjects: [{ kind: "User", apiGroup: RBAC, name: user }],
    },
  ];
}
