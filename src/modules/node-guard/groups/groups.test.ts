import { describe, expect, test } from "vitest";
import { Gates } from "../../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../../core/installation/installation.ts";
import type { JsonObject } from "../../../core/json.ts";
import { Assembly } from "../../../core/module/assembly.ts";
import { nodeGuard } from "../index.ts";
import { GATE } from "../settings.ts";
import { steers } from "./group.ts";
import { groupsOf } from "./groups.ts";

const NOW = Date.parse("2026-11-16T12:00:00Z");
const CP = { matchExpressions: [{ key: "node-role.kubernetes.io/control-plane", operator: "Exists" }] };

const RESOURCES: Readonly<Record<string, string>> = {
  NodeSchedulingPolicyConfig: "nodeschedulingpolicyconfigs.scheduling.openshift.io",
  NodeSchedulingPolicy: "nodeschedulingpolicies.scheduling.openshift.io",
  Scheduler: "schedulers.config.openshift.io",
  NodeGuardOverride: "nodeguardoverrides.usher.dev",
  ClusterVersion: "clusterversions.config.openshift.io",
};

function object(kind: string, spec: JsonObject, name = "cluster"): JsonObject {
  return { apiVersion: "x/v1", kind, metadata: { name }, spec };
}

function groups(objects: readonly JsonObject[], settings: JsonObject = {}, now: number | undefined = NOW) {
  const installation: Installation = { ...DEFAULT_INSTALLATION, settings: { "node-guard": settings } };
  const assembly = new Assembly([nodeGuard], installation, new Gates([{ ...GATE, default: true }]));
  assembly.apply(
    objects.map((one) => ({
      resource: RESOURCES[String(one["kind"])] ?? "",
      namespace: "",
      name: String((one["metadata"] as JsonObject)["name"]),
      object: one,
    })),
  );
  return groupsOf(assembly.view, installation, now);
}

const file = (mode?: string, more: JsonObject = {}) =>
  object(
    "NodeSchedulingPolicyConfig",
    {
      groups: [
        {
          name: "ControlPlane",
          labelSelector: CP,
          ...(mode === undefined ? {} : { mode }),
          authorizedUsers: ["f/a"],
          ...more,
        },
      ],
    },
    "configuration",
  );
const policy = (mode?: string, more: JsonObject = {}, spec: JsonObject = {}) =>
  object("NodeSchedulingPolicy", {
    groups: [{ name: "ControlPlane", ...(mode === undefined ? {} : { mode }), ...more }],
    ...spec,
  });
const scheduler = (mode?: string, mastersSchedulable = false) =>
  object("Scheduler", {
    mastersSchedulable,
    ...(mode === undefined
      ? {}
      : { schedulingGroups: [{ name: "ControlPlane", mode, authorizedUsers: ["s/a"] }] }),
  });
const override = (mode: string, from: string, until: string, name = "o") =>
  object("NodeGuardOverride", { group: "ControlPlane", mode, from, until, reason: "x" }, name);

describe("the mode is the first of override, Scheduler, NodeSchedulingPolicy, file; else Disable", () => {
  const hour = ["2026-11-16T11:30:00Z", "2026-11-16T12:30:00Z"] as const;
  test.each<[string, JsonObject[], string, string]>([
    ["nothing", [], "Disable", "no mode is set"],
    ["file", [file("Enable")], "Enable", "NodeSchedulingPolicyConfig"],
    ["policy before file", [file("Enable"), policy("Inform")], "Inform", "NodeSchedulingPolicy cluster"],
    ["Scheduler before policy", [policy("Enable"), scheduler("Inform")], "Inform", "Scheduler cluster"],
    [
      "an empty mode counts as absent",
      [file("Enable"), policy(""), scheduler("")],
      "Enable",
      "NodeSchedulingPolicyConfig",
    ],
    [
      "override first",
      [scheduler("Enable"), override("Disable", ...hour)],
      "Disable",
      "NodeGuardOverride o until 2026-11-16T12:30:00.000Z",
    ],
    [
      "an override only weakens",
      [policy("Disable"), override("Inform", ...hour)],
      "Disable",
      "NodeSchedulingPolicy cluster",
    ],
    [
      "of two overrides the weaker",
      [policy("Enable"), override("Inform", ...hour, "a"), override("Disable", ...hour, "b")],
      "Disable",
      "NodeGuardOverride b until 2026-11-16T12:30:00.000Z",
    ],
    [
      "an override that has ended",
      [policy("Enable"), override("Disable", "2026-11-16T10:00:00Z", "2026-11-16T12:00:00Z")],
      "Enable",
      "NodeSchedulingPolicy cluster",
    ],
    [
      "an override that has not begun",
      [policy("Enable"), override("Disable", "2026-11-16T12:00:01Z", "2026-11-16T13:00:00Z")],
      "Enable",
      "NodeSchedulingPolicy cluster",
    ],
    [
      "an override of more than a day",
      [policy("Enable"), override("Disable", "2026-11-16T00:00:00Z", "2026-11-17T00:00:01Z")],
      "Enable",
      "NodeSchedulingPolicy cluster",
    ],
    [
      "a policy of another name",
      [file("Enable"), { ...policy("Disable"), metadata: { name: "other" } }],
      "Enable",
      "NodeSchedulingPolicyConfig",
    ],
  ])("%s", (_case, objects, effectiveMode, because) => {
    expect(groups(objects)).toMatchObject([{ name: "ControlPlane", effectiveMode, because }]);
  });
});

describe("the built-in group", () => {
  const version = object("ClusterVersion", {}, "version");
  test.each<[string, JsonObject[], JsonObject, boolean]>([
    ["Auto if OpenShift's API is served", [version], { builtIn: "Auto" }, true],
    ["by default, if OpenShift's API is served", [version], {}, true],
    ["Auto elsewhere", [], { builtIn: "Auto" }, false],
    ["Kubernetes on OpenShift", [version], { builtIn: "Kubernetes" }, false],
    ["OpenShift elsewhere", [], { builtIn: "OpenShift" }, true],
  ])("%s", (_case, objects, settings, openshift) => {
    const [group] = groups(objects, settings);
    const namespaces = group?.entries.map(({ namespace }) => namespace) ?? [];
    expect(group?.name).toBe("ControlPlane");
    expect(namespaces.includes("openshift-etcd")).toBe(openshift);
  });
});

describe("mastersSchedulable", () => {
  test.each<[string, boolean, string, string]>([
    ["Corrected", true, "Enable", "Inform"],
    ["Corrected", false, "Enable", "Enable"],
    ["Corrected", true, "Inform", "Inform"],
    ["Corrected", true, "Disable", "Disable"],
    ["Literal", false, "Enable", "Inform"],
    ["Literal", true, "Enable", "Enable"],
    ["Literal", true, "Disable", "Disable"],
    ["Off", true, "Enable", "Enable"],
    ["Disabled", true, "Enable", "Enable"],
    ["Disabled", false, "Enable", "Enable"],
  ])("%s, %s, %s gives %s", (consistency, masters, mode, effectiveMode) => {
    const objects = [policy(mode, {}, { consistency }), scheduler(undefined, masters)];
    expect(groups(objects)).toMatchObject([{ mode, effectiveMode }]);
  });

  test("caps only ControlPlane, and nothing without a Scheduler", () => {
    const gpu = { name: "gpu", labelSelector: { matchLabels: { gpu: "a" } }, mode: "Enable" };
    const spec = { groups: [{ name: "ControlPlane", mode: "Enable" }, gpu] };
    const capped = groups([object("NodeSchedulingPolicy", spec), scheduler(undefined, true)]);
    expect(capped.map(({ effectiveMode }) => effectiveMode).sort()).toEqual(["Enable", "Inform"]);
    expect(groups([policy("Enable")])).toMatchObject([{ effectiveMode: "Enable" }]);
  });
});

test("entries add up, each with its origin", () => {
  const [group] = groups([
    file("Enable"),
    policy(undefined, { authorizedUsers: ["p/a"], workloads: ["p/w"] }),
    scheduler("Inform"),
  ]);
  expect(group?.entries.map(({ entry, origin, as }) => [entry, origin, as])).toEqual([
    ["f/a", "file", "both"],
    ["p/a", "NodeSchedulingPolicy", "both"],
    ["p/w", "NodeSchedulingPolicy", "pod"],
    ["s/a", "Scheduler", "both"],
  ]);
});

test("a policy changes neither selector nor entries of a built-in group", () => {
  const [plain] = groups([]);
  const [group] = groups([
    policy("Enable", { labelSelector: { matchLabels: { none: "x" } }, authorizedUsers: ["p/a"] }),
  ]);
  expect(group?.selector).toEqual(plain?.selector);
  expect(group?.entries.slice(0, plain?.entries.length)).toEqual(plain?.entries);
});

test("a bad entry costs that entry, never the mode", () => {
  const [group] = groups([
    policy("Enable", { authorizedUsers: ["a/b/c", "good/one", " x"], exactUsers: [""] }),
  ]);
  expect(group?.effectiveMode).toBe("Enable");
  const added = group?.entries.filter(({ origin }) => origin === "NodeSchedulingPolicy");
  expect(added?.map(({ entry }) => entry)).toEqual(["good/one"]);
});

test("a Scheduler sets ControlPlane only", () => {
  const other = object("Scheduler", {
    schedulingGroups: [{ name: "gpu", mode: "Enable", authorizedUsers: [] }],
  });
  expect(groups([other]).map(({ name }) => name)).toEqual(["ControlPlane"]);
});

test("inline policy and built-in lists by setting", () => {
  const inline = {
    groups: [
      { name: "edge", labelSelector: { matchLabels: { edge: "a" } }, mode: "Inform", authorizedUsers: [] },
    ],
  };
  expect(groups([], { policy: inline })).toMatchObject([
    { name: "edge", effectiveMode: "Inform", because: expect.stringContaining("configuration") },
  ]);
  expect(groups([], { builtIn: "None" })).toEqual([]);
  const entries = (builtIn: string) => groups([], { builtIn })[0]?.entries.map(({ entry }) => entry);
  expect(entries("OpenShift")).toContain("openshift-multus/multus");
  expect(entries("Kubernetes")).not.toContain("openshift-multus/multus");
});

test("defaults follow the effective mode", () => {
  expect(groups([policy("Enable")])).toMatchObject([
    {
      protectNodeLabels: true,
      steering: "Affinity",
      rbac: false,
      serviceAccountScope: "Namespace",
      earlyRefusal: "Deny",
    },
  ]);
  expect(groups([policy("Enable")]).map(steers)).toEqual([true]);
  expect(groups([policy("Enable")])[0]).not.toHaveProperty("failurePolicy");
  const informing = groups([policy("Inform", { steering: "Affinity" })]);
  expect(informing).toMatchObject([{ protectNodeLabels: false }]);
  expect(informing.map(steers)).toEqual([false]);
  // Off is the earlier value.
  for (const steering of ["Disabled", "Off"]) {
    const found = groups([policy("Enable", { steering, protectNodeLabels: false })]);
    expect(found).toMatchObject([{ protectNodeLabels: false, steering: "Disabled" }]);
    expect(found.map(steers)).toEqual([false]);
  }
});

test.each([
  null,
  5,
  "x",
  [],
  { groups: "x" },
  { groups: [null, 5, {}, { name: 3 }] },
  { groups: [{ name: "ControlPlane", mode: {}, authorizedUsers: "x", labelSelector: 5 }] },
  JSON.parse('{"groups":[{"name":"__proto__","mode":"Enable"}]}'),
])("a spec of %j breaks nothing", (spec) => {
  for (const kind of Object.keys(RESOURCES))
    expect(() => groups([object(kind, spec as JsonObject)])).not.toThrow();
});
