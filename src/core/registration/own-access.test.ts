import { expect, test } from "vitest";
import { z } from "zod";
import { kindOf } from "../../../test/builders/kind.ts";
import { Gates } from "../installation/gates.ts";
import { DEFAULT_INSTALLATION } from "../installation/installation.ts";
import { type JsonObject, stringAt } from "../json.ts";
import { defineModule, type Module } from "../module/module.ts";
import { ownRoles } from "./own-access.ts";
import { roleObjects } from "./rbac.ts";

function module(more: Partial<Module> = {}): Module {
  return defineModule({
    name: "m",
    summary: "",
    kinds: [
      kindOf("test.usher.dev", "Seating", {
        versions: [{ name: "v1", storage: true, spec: z.strictObject({}) }],
      }),
    ],
    reads: [],
    hooks: () => [],
    assemble: () => ({}),
    ...more,
  });
}

function access(modules: readonly Module[], installation = DEFAULT_INSTALLATION): JsonObject[] {
  return roleObjects(ownRoles(modules), { modules, installation, gates: new Gates([]) });
}

interface Rule {
  readonly apiGroups: readonly string[];
  readonly resources: readonly string[];
  readonly resourceNames?: readonly string[];
  readonly verbs: readonly string[];
}

function rulesOf(objects: readonly JsonObject[], kind: string): Rule[] {
  return objects
    .filter((one) => one["kind"] === kind)
    .flatMap((one) => (one["rules"] ?? []) as unknown as Rule[]);
}

test("cluster-wide, usher writes only objects with its own names", () => {
  const rules = rulesOf(access([module()], DEFAULT_INSTALLATION), "ClusterRole");
  expect(rules.map(({ resources, resourceNames }) => [resources.join(), resourceNames])).toEqual([
    ["mutatingwebhookconfigurations,validatingwebhookconfigurations", ["usher"]],
    ["mutatingwebhookconfigurations,validatingwebhookconfigurations", ["usher"]],
    ["clusterroles", ["usher-installation"]],
    ["namespaces", ["usher-system"]],
    ["customresourcedefinitions", ["seatings.test.usher.dev"]],
    // The watchdog.
    ["mutatingwebhookconfigurations,validatingwebhookconfigurations", ["usher"]],
  ]);
  expect(rules.map(({ verbs }) => verbs.join())).toEqual([
    "get",
    "create,patch,delete",
    "get,patch,delete",
    "get",
    "get,create,patch",
    "get,patch",
  ]);
});

test("a predecessor may be read only", () => {
  const objects = access([module({ predecessors: [{ name: "old", meaning: "" }] })], DEFAULT_INSTALLATION);
  const rule = rulesOf(objects, "ClusterRole").find(({ resourceNames }) => resourceNames?.includes("old"));
  expect(rule?.verbs).toEqual(["get"]);
});

test("without kinds there is no rule for all CRDs", () => {
  const rules = rulesOf(access([module({ kinds: [] })], DEFAULT_INSTALLATION), "ClusterRole");
  expect(rules.flatMap(({ resources }) => resources)).not.toContain("customresourcedefinitions");
  for (const { resourceNames } of rules) expect(resourceNames?.length).toBeGreaterThan(0);
});

test("usher can read only its own secret, and can't change its roles", () => {
  const objects = access([module()], { ...DEFAULT_INSTALLATION, namespace: "hall" });
  const secrets = rulesOf(objects, "Role").filter(({ resources }) => resources.includes("secrets"));
  expect(secrets.map(({ resourceNames }) => resourceNames)).toEqual([["usher-certificates"]]);
  for (const { apiGroups, resources, resourceNames, verbs } of [
    ...rulesOf(objects, "Role"),
    ...rulesOf(objects, "ClusterRole"),
  ]) {
    // The only role that it may change has no binding.
    if (apiGroups.includes("rbac.authorization.k8s.io"))
      expect(resourceNames).toEqual(["usher-installation"]);
    expect([...apiGroups, ...resources, ...verbs]).not.toContain("*");
  }
  for (const object of objects.filter(({ kind }) => kind === "Role" || kind === "RoleBinding"))
    expect(stringAt(object, "metadata", "namespace")).toBe("hall");
});

test("without management of CRDs there is no permission on any", () => {
  const objects = access([module()], { ...DEFAULT_INSTALLATION, manageCrds: false });
  expect(rulesOf(objects, "ClusterRole").flatMap(({ resources }) => resources)).not.toContain(
    "customresourcedefinitions",
  );
});

test("usher may read and renew only its own Lease: kube-system has the scheduler's", () => {
  const rules = rulesOf(access([module()], DEFAULT_INSTALLATION), "Role");
  const leases = rules.filter(({ resources }) => resources.includes("leases"));
  expect(leases.map(({ verbs, resourceNames }) => [verbs, resourceNames])).toEqual([
    [["get", "update"], ["usher"]],
    [["create"], undefined],
  ]);
});
