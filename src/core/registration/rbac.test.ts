import { expect, test } from "vitest";
import { z } from "zod";
import { Gates } from "../installation/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../installation/installation.ts";
import { moduleSetting } from "../installation/setting-condition.ts";
import { at, type Json, type JsonObject, stringAt } from "../json.ts";
import { workloadTable } from "../kubernetes/workloads.ts";
import { defineModule, type Module, type Read } from "../module/module.ts";
import type { Kind } from "../policy/kind.ts";
import { accessObjects } from "./rbac.ts";

function kind(plural: string, more: Partial<Kind> = {}, status = false): Kind {
  const version = { name: "v1", storage: true, spec: z.strictObject({}) };
  return {
    group: "test.usher.dev",
    kind: plural,
    plural,
    singular: plural,
    scope: "Namespaced",
    standing: "resource",
    summary: "",
    versions: [status ? { ...version, status: z.strictObject({}) } : version],
    prepare: () => ({ policy: undefined, problems: [] }),
    ...more,
  };
}

function read(group: string, resource: string): Read {
  return { group, resource, version: "v1", kind: resource, scope: "Cluster", keep: [] };
}

function module(kinds: readonly Kind[], reads: readonly Read[] = []): Module {
  return defineModule({ name: "m", summary: "", kinds, reads, hooks: () => [], assemble: () => ({}) });
}

function rulesOf(objects: readonly JsonObject[], name: string): unknown {
  const found = objects.find(
    ({ kind, metadata }) => kind === "ClusterRole" && (metadata as JsonObject)["name"] === name,
  );
  return found?.["rules"];
}

const EVENTS = { apiGroups: ["events.k8s.io"], resources: ["events"], verbs: ["create", "patch"] };

function accessFor(modules: readonly Module[], installation: Installation = DEFAULT_INSTALLATION) {
  return accessObjects({ modules, installation, gates: new Gates([]) });
}

test("two modules, whole", () => {
  const modules = [
    module(
      [kind("seatings", {}, true), kind("clusterseatings", { scope: "Cluster" }, true)],
      [read("", "nodes"), read("", "namespaces")],
    ),
    { ...module([kind("notes")], [read("", "namespaces"), read("apps", "replicasets")]), name: "n" },
  ];
  const view = ["get", "list", "watch"];
  expect(accessFor(modules, { ...DEFAULT_INSTALLATION, namespace: "hall" })).toEqual([
    { apiVersion: "v1", kind: "ServiceAccount", metadata: { name: "usher", namespace: "hall" } },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "usher" },
      rules: [
        EVENTS,
        { apiGroups: ["test.usher.dev"], resources: ["clusterseatings", "notes", "seatings"], verbs: view },
        {
          apiGroups: ["test.usher.dev"],
          resources: ["clusterseatings/status", "seatings/status"],
          verbs: ["update", "patch"],
        },
        { apiGroups: [""], resources: ["namespaces", "nodes"], verbs: view },
        { apiGroups: [""], resources: ["namespaces"], verbs: view },
        { apiGroups: ["apps"], resources: ["replicasets"], verbs: view },
      ],
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRoleBinding",
      metadata: { name: "usher" },
      roleRef: { apiGroup: "rbac.authorization.k8s.io", kind: "ClusterRole", name: "usher" },
      subjects: [{ kind: "ServiceAccount", name: "usher", namespace: "hall" }],
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: {
        name: "usher-policies-view",
        labels: {
          "rbac.authorization.k8s.io/aggregate-to-view": "true",
          "rbac.authorization.k8s.io/aggregate-to-edit": "true",
          "rbac.authorization.k8s.io/aggregate-to-admin": "true",
        },
      },
      rules: [
        { apiGroups: ["test.usher.dev"], resources: ["seatings"], verbs: view },
        { apiGroups: ["test.usher.dev"], resources: ["notes"], verbs: view },
      ],
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "usher-policies-edit" },
      rules: [
        {
          apiGroups: ["test.usher.dev"],
          resources: ["seatings"],
          verbs: [...view, "create", "update", "patch", "delete", "deletecollection"],
        },
        {
          apiGroups: ["test.usher.dev"],
          resources: ["notes"],
          verbs: [...view, "create", "update", "patch", "delete", "deletecollection"],
        },
      ],
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "usher-cluster-policies-view" },
      rules: [{ apiGroups: ["test.usher.dev"], resources: ["clusterseatings"], verbs: view }],
    },
    {
      apiVersion: "rbac.authorization.k8s.io/v1",
      kind: "ClusterRole",
      metadata: { name: "usher-cluster-policies-edit" },
      rules: [
        {
          apiGroups: ["test.usher.dev"],
          resources: ["clusterseatings"],
          verbs: [...view, "create", "update", "patch", "delete", "deletecollection"],
        },
      ],
    },
  ]);
});

test("configuration files are not resources, and cluster-scoped kinds have roles that are not aggregated", () => {
  const objects = accessFor([
    module([kind("files", { standing: "file" }), kind("halls", { scope: "Cluster" })]),
  ]);
  expect(rulesOf(objects, "usher")).toEqual([
    EVENTS,
    { apiGroups: ["test.usher.dev"], resources: ["halls"], verbs: ["get", "list", "watch"] },
  ]);
  expect(rulesOf(objects, "usher-policies-view")).toBeUndefined();
  expect(rulesOf(objects, "usher-policies-edit")).toBeUndefined();
  const roles = objects.filter(({ metadata }) =>
    (stringAt(metadata, "name") ?? "").startsWith("usher-cluster-policies-"),
  );
  expect(roles.map(({ metadata }) => metadata)).toEqual([
    { name: "usher-cluster-policies-view" },
    { name: "usher-cluster-policies-edit" },
  ]);
  expect(rulesOf(objects, "usher-cluster-policies-view")).toEqual([
    { apiGroups: ["test.usher.dev"], resources: ["halls"], verbs: ["get", "list", "watch"] },
  ]);
});

test("permission to write kinds that act on the whole cluster is a separate role", () => {
  const objects = accessFor([module([kind("seatings", {}), kind("plans", { reach: "Cluster" })])]);
  const resources = (name: string) => at(rulesOf(objects, name) as Json, 0, "resources");
  expect(resources("usher-policies-view")).toEqual(["plans", "seatings"]);
  expect(resources("usher-policies-edit")).toEqual(["seatings"]);
  expect(resources("usher-cluster-policies-edit")).toEqual(["plans"]);
});

test("conditional permissions of modules follow settings, gates and lists", () => {
  const asking: Module = {
    ...module([]),
    access: [
      { group: "", resource: "pods", verbs: ["list", "get"], why: "look" },
      {
        group: "apps",
        resource: "deployments",
        verbs: ["patch"],
        why: "repair",
        when: [moduleSetting("m", ["repair"], true, false)],
      },
      { each: "workloads", verbs: ["get"], why: "look", when: [{ listed: ["modules", "m", "only"] }] },
    ],
  };
  const rollouts = {
    group: "argoproj.io",
    version: "v1",
    kind: "Rollout",
    resource: "rollouts",
    template: ["spec"],
  };
  const rules = (settings: Installation["settings"] = {}, workloads = workloadTable()) =>
    rulesOf(accessFor([asking], { ...DEFAULT_INSTALLATION, settings, workloads }), "usher");
  const pods = { apiGroups: [""], resources: ["pods"], verbs: ["list", "get"] };
  const patch = { apiGroups: ["apps"], resources: ["deployments"], verbs: ["patch"] };
  const each = { apiGroups: ["argoproj.io"], resources: ["rollouts"], verbs: ["get"] };
  expect(rules()).toEqual([EVENTS, pods]);
  expect(rules({ m: { repair: true } })).toEqual([EVENTS, pods, patch]);
  expect(rules({}, workloadTable([rollouts]))).toEqual([EVENTS, pods, each]);
  expect(rules({ m: { only: ["rollouts.argoproj.io"] } }, workloadTable([rollouts]))).toEqual([
    EVENTS,
    pods,
    each,
  ]);
  expect(rules({ m: { only: ["pods"] } }, workloadTable([rollouts]))).toEqual([EVENTS, pods]);
});

test("usher may never write anything but status and events", () => {
  const objects = accessFor([module([kind("seatings", {}, true)], [read("", "secrets")])]);
  const rules = rulesOf(objects, "usher") as { resources: string[]; verbs: string[] }[];
  const writing = rules.filter(({ verbs }) => verbs.some((verb) => !["get", "list", "watch"].includes(verb)));
  expect(writing.flatMap(({ resources }) => resources)).toEqual(["events", "seatings/status"]);
});
