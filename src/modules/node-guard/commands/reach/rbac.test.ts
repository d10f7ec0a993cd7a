import { expect, test } from "vitest";
import type { JsonObject } from "../../../../core/json.ts";
import { grantsOf, type RbacObjects } from "./rbac.ts";

const NONE: RbacObjects = { clusterRoles: [], roles: [], clusterRoleBindings: [], roleBindings: [] };
const rule = (resources: string[], verbs: string[], more: JsonObject = {}): JsonObject => ({
  apiGroups: [""],
  resources,
  verbs,
  ...more,
});
const clusterRole = (...rules: JsonObject[]): JsonObject => ({ metadata: { name: "r" }, rules });
const binding = (subjects: JsonObject[], kind = "ClusterRole"): JsonObject => ({
  metadata: { name: "b" },
  roleRef: { apiGroup: "rbac.authorization.k8s.io", kind, name: "r" },
  subjects,
});
const ALICE = { kind: "User", name: "alice" };
const mayOf = (...rules: JsonObject[]) =>
  grantsOf({
    ...NONE,
    clusterRoles: [clusterRole(...rules)],
    clusterRoleBindings: [binding([ALICE])],
  }).grants.flatMap(({ may }) => may);

test.each<[JsonObject, string[]]>([
  [rule(["pods"], ["create"]), ["create pods"]],
  [rule(["pods"], ["get", "list"]), []],
  [rule(["pods"], ["*"]), ["create pods"]],
  [rule(["pods/binding", "bindings"], ["create"]), ["create pods/binding", "create bindings"]],
  [rule(["*/binding"], ["create"]), ["create pods/binding"]],
  [rule(["pods/exec"], ["create"]), []],
  [rule(["pods"], ["create"], { resourceNames: ["a"] }), []],
  [rule(["pods"], ["create"], { apiGroups: ["metrics.k8s.io"] }), []],
  [rule(["deployments"], ["create"], { apiGroups: ["apps"] }), ["create deployments.apps"]],
  [{ nonResourceURLs: ["/metrics"], verbs: ["get"] }, []],
])("%j grants %j", (one, expected) => {
  expect(mayOf(one)).toEqual(expected);
});

test("a rule for everything grants each way", () => {
  expect(mayOf(rule(["*"], ["*"], { apiGroups: ["*"] }))).toHaveLength(10);
});

test("a RoleBinding grants in its namespace, also by a ClusterRole; a Role of another namespace does not count", () => {
  const roleBinding = (kind: string) => ({
    ...binding([ALICE], kind),
    metadata: { name: "b", namespace: "shop" },
  });
  const role = { metadata: { name: "r", namespace: "other" }, rules: [rule(["pods"], ["create"])] };
  const objects = { ...NONE, clusterRoles: [clusterRole(rule(["pods"], ["create"]))], roles: [role] };
  expect(grantsOf({ ...objects, roleBindings: [roleBinding("ClusterRole")] })).toEqual({
    grants: [{ subject: ALICE, may: ["create pods"], namespace: "shop", by: "RoleBinding shop/b" }],
    unresolved: [],
  });
  expect(grantsOf({ ...objects, roleBindings: [roleBinding("Role")] })).toEqual({
    grants: [],
    unresolved: ["RoleBinding shop/b"],
  });
});

test("a service account without a namespace is the binding's own, and invalid subjects are skipped", () => {
  const subjects = [{ kind: "ServiceAccount", name: "web" }, { kind: "Group" }, {}, { name: "x" }];
  const roleBinding = { ...binding(subjects as JsonObject[]), metadata: { name: "b", namespace: "shop" } };
  const objects = { ...NONE, clusterRoles: [clusterRole(rule(["pods"], ["create"]))] };
  expect(grantsOf({ ...objects, roleBindings: [roleBinding] }).grants.map(({ subject }) => subject)).toEqual([
    { kind: "ServiceAccount", name: "web", namespace: "shop" },
  ]);
  expect(grantsOf({ ...NONE, clusterRoles: [{}], roleBindings: [{}, { subjects: "x" }] }).grants).toEqual([]);
});
