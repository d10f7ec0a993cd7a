import { describe, expect, test } from "vitest";
import { schedulingPolicy } from "../../../../test/builders/guard.ts";
import { node as nodeOf } from "../../../../test/builders/node.ts";
import { Gates } from "../../../core/installation/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../../core/installation/installation.ts";
import { isObject, type JsonObject } from "../../../core/json.ts";
import { Assembly } from "../../../core/module/assembly.ts";
import { checkObject } from "../../../core/policy/check.ts";
import { describeProblem } from "../../../core/policy/problem.ts";
import { compileAll } from "../fallback/compile.ts";
import { nodeGuard } from "../index.ts";
import { override, policy, policyConfig, scheduler } from "../kinds.ts";
import { GATE } from "../settings.ts";

const CP_LABEL = "node-role.kubernetes.io/control-plane";
const node = (name: string, labels: JsonObject = {}, spec: JsonObject = {}): JsonObject =>
  nodeOf(name, labels, { spec });
const NODES = [node("cp-0", { [CP_LABEL]: "" }), node("w-0")];
const RESOURCES: Readonly<Record<string, string>> = {
  Node: "nodes",
  Pod: "pods",
  DaemonSet: "daemonsets.apps",
  Scheduler: "schedulers.config.openshift.io",
  ClusterVersion: "clusterversions.config.openshift.io",
  ValidatingAdmissionPolicy: "validatingadmissionpolicies.admissionregistration.k8s.io",
  ValidatingAdmissionPolicyBinding: "validatingadmissionpolicybindings.admissionregistration.k8s.io",
  NodeSchedulingPolicy: "nodeschedulingpolicies.scheduling.openshift.io",
};

function assemblyOf(objects: readonly JsonObject[], installation: Installation = DEFAULT_INSTALLATION) {
  const assembly = new Assembly([nodeGuard], installation, new Gates([{ ...GATE, default: true }]));
  assembly.apply(
    objects.map((object) => {
      const { name, namespace = "" } = object["metadata"] as { name: string; namespace?: string };
      return { resource: RESOURCES[String(object["kind"])] ?? "", namespace, name, object };
    }),
  );
  return assembly;
}

const ControlPlane = (more: JsonObject = {}): JsonObject => ({
  name: "ControlPlane",
  emergencyUsers: ["sre"],
  ...more,
});
function found(
  object: JsonObject,
  objects: readonly JsonObject[] = NODES,
  kind = policy,
  installation: Installation = DEFAULT_INSTALLATION,
): string[] {
  const assembly = assemblyOf(objects, installation);
  return checkObject(kind, object, assembly.view, assembly).map(
    (one) => `${one.severity} ${describeProblem(one)}`,
  );
}

const gpu = (more: JsonObject = {}): JsonObject => ({
  name: "gpu",
  labelSelector: { matchLabels: { "node-role.kubernetes.io/gpu": "" } },
  authorizedUsers: ["system:kube-scheduler", "usher-system/usher"],
  ...more,
});
const masters = (mastersSchedulable: boolean): JsonObject => ({
  apiVersion: "config.openshift.io/v1",
  kind: "Scheduler",
  metadata: { name: "cluster" },
  spec: { mastersSchedulable },
});

describe("refused on write and offline", () => {
  test.each<[string, JsonObject, JsonObject[], RegExp]>([
    [
      "an empty selector",
      schedulingPolicy([gpu({ labelSelector: {} })]),
      NODES,
      /labelSelector: selects every node.*AllNodes/,
    ],
    [
      "Enable if every schedulable node is protected",
      schedulingPolicy([ControlPlane({ mode: "Enable" })]),
      [node("cp-0", { [CP_LABEL]: "" }), node("w-0", {}, { unschedulable: true })],
      /mode: Enable would protect every schedulable node/,
    ],
    [
      "Enable while mastersSchedulable is true",
      schedulingPolicy([ControlPlane({ mode: "Enable" })]),
      [...NODES, masters(true)],
      /contradict/,
    ],
    ["an unknown mode", schedulingPolicy([ControlPlane({ mode: "Enabled" })]), NODES, /mode/],
    [
      "a bad principal",
      schedulingPolicy([ControlPlane({ authorizedUsers: ["a/b/c"] })]),
      NODES,
      /authorizedUsers\[0\].*not a service account/,
    ],
    ["two groups of one name", schedulingPolicy([ControlPlane(), ControlPlane()]), NODES, /duplicate/],
    [
      "the selector of a built-in group",
      schedulingPolicy([ControlPlane({ labelSelector: { matchLabels: { a: "b" } } })]),
      NODES,
      /can't be changed/,
    ],
    [
      "a new group without a selector",
      schedulingPolicy([{ name: "edge", mode: "Inform" }]),
      NODES,
      /needs a labelSelector/,
    ],
    [
      "Enable while usher is not authorised",
      schedulingPolicy([gpu({ mode: "Enable", authorizedUsers: ["system:kube-scheduler"] })]),
      NODES,
      /usher itself is not authorised: add usher-system\/usher/,
    ],
    [
      "Ignore without the fallback",
      schedulingPolicy([ControlPlane({ mode: "Enable", failurePolicy: "Ignore" })]),
      NODES,
      /Ignore is accepted only while the fallback is in force/,
    ],
    ["an unknown field", schedulingPolicy([ControlPlane({ foo: 1 })]), NODES, /foo/],
  ])("%s", (_case, object, objects, message) => {
    const errors = found(object, objects);
    expect(errors.join("\n")).toMatch(message);
    expect(errors.some((one) => one.startsWith("error") || /unknown field/.test(one))).toBe(true);
  });

  test.each<[string, JsonObject, JsonObject[]]>([
    ["AllNodes", schedulingPolicy([gpu({ labelSelector: {}, acknowledge: ["AllNodes"] })]), NODES],
    [
      "NoOtherNodes",
      schedulingPolicy([ControlPlane({ mode: "Enable", acknowledge: ["NoOtherNodes"] })]),
      [node("cp-0", { [CP_LABEL]: "" })],
    ],
    [
      "Enable with mastersSchedulable false",
      schedulingPolicy([ControlPlane({ mode: "Enable" })]),
      [...NODES, masters(false)],
    ],
    [
      "consistency Disabled",
      schedulingPolicy([ControlPlane({ mode: "Enable" })], "cluster", { consistency: "Disabled" }),
      [...NODES, masters(true)],
    ],
    [
      "Inform with Ignore",
      schedulingPolicy([ControlPlane({ mode: "Inform", failurePolicy: "Ignore" })]),
      NODES,
    ],
  ])("not %s", (_case, object, objects) => {
    expect(found(object, objects).filter((one) => one.startsWith("error"))).toEqual([]);
  });

  test("Ignore is accepted while the fallback is in force and current", () => {
    const installation: Installation = {
      ...DEFAULT_INSTALLATION,
      settings: { "node-guard": { fallback: true } },
    };
    const enabled = schedulingPolicy([ControlPlane({ mode: "Enable" })]);
    const compiled = compileAll(assemblyOf([...NODES, enabled], installation).view, installation, 0);
    const open = schedulingPolicy([ControlPlane({ mode: "Enable", failurePolicy: "Ignore" })]);
    expect(compiled).toHaveLength(6);
    expect(found(open, [...NODES, ...compiled], policy, installation)).toEqual([]);
    expect(found(open, [...NODES, ...compiled.slice(1)], policy, installation).join()).toMatch(/fallback/);
    // As the API server stores them.
    const change = (spec: (spec: JsonObject) => JsonObject) => [
      ...NODES,
      ...compiled.map((one) => ({ ...one, spec: spec(one["spec"] as JsonObject) })),
    ];
    const inside = (more: JsonObject) =>
      change((spec) =>
        Object.fromEntries(
          Object.entries(spec).map(([key, value]) => [
            key,
            key.startsWith("match") && isObject(value) ? { ...value, ...more } : (value ?? null),
          ]),
        ),
      );
    expect(
      found(open, inside({ matchPolicy: "Equivalent", objectSelector: {} }), policy, installation),
    ).toEqual([]);
    // An additional field may exempt requests that the group refuses.
    for (const more of [
      { excludeResourceRules: [{ resources: ["pods"] }] },
      { objectSelector: { matchLabels: { a: "b" } } },
      { matchPolicy: "Exact" },
    ])
      expect(found(open, inside(more), policy, installation).join(), JSON.stringify(more)).toMatch(
        /fallback/,
      );
    // Compiled from other lists.
    const wider = schedulingPolicy([
      ControlPlane({ mode: "Enable", failurePolicy: "Ignore", assigners: ["x/y"] }),
    ]);
    expect(found(wider, [...NODES, ...compiled], policy, installation).join()).toMatch(/fallback/);
  });
});

describe("warnings", () => {
  test.each<[string, JsonObject, JsonObject[], RegExp]>([
    [
      "a label that a kubelet may change",
      schedulingPolicy([gpu({ labelSelector: { matchLabels: { tier: "cp" } } })]),
      NODES,
      /a kubelet may change the label tier/,
    ],
    [
      "the hostname",
      schedulingPolicy([gpu({ labelSelector: { matchLabels: { "kubernetes.io/hostname": "a" } } })]),
      NODES,
      /kubelet may change/,
    ],
    [
      "no scheduler",
      schedulingPolicy([gpu({ authorizedUsers: ["a/b"] })]),
      NODES,
      /does not list system:kube-scheduler/,
    ],
    ["no entry", schedulingPolicy([gpu({ authorizedUsers: [] })]), NODES, /no entry/],
    [
      "a prefix",
      schedulingPolicy([ControlPlane({ workloads: ["gather-*/default"] })]),
      NODES,
      /every namespace with that beginning/,
    ],
    [
      "overlapping groups",
      schedulingPolicy([gpu({ labelSelector: { matchLabels: { [CP_LABEL]: "" } } })]),
      NODES,
      /in group ControlPlane as well/,
    ],
    ["no node", schedulingPolicy([gpu()]), NODES, /selects no node now/],
    ["another name", schedulingPolicy([], "other"), NODES, /only the object named cluster counts/],
    [
      "a running pod that Enable would refuse",
      schedulingPolicy([ControlPlane({ mode: "Inform" })]),
      [...NODES, { kind: "Pod", metadata: { name: "web", namespace: "team-a" }, spec: { nodeName: "cp-0" } }],
      /1 pod on nodes of the group is not authorised: team-a\/web; it keeps running/,
    ],
    [
      "a DaemonSet with hostNetwork",
      schedulingPolicy([ControlPlane({ mode: "Inform" })]),
      [
        ...NODES,
        {
          kind: "DaemonSet",
          metadata: { name: "cni", namespace: "cni" },
          spec: { template: { spec: { hostNetwork: true } } },
        },
      ],
      /hostNetwork.*cni\/cni/,
    ],
  ])("%s", (_case, object, objects, message) => {
    const problems = found(object, objects);
    expect(problems.join("\n")).toMatch(message);
    expect(problems.filter((one) => one.startsWith("error"))).toEqual([]);
  });

  test.each<[string, JsonObject[], string]>([
    [
      "OpenShift",
      [{ kind: "ClusterVersion", metadata: { name: "version" } }],
      'oc debug node/… and oc adm must-gather --node-name are refused to every user, also to system:admin and kube:admin; list the users that debug nodes, such as emergencyUsers: ["system:admin", "kube:admin"]',
    ],
    [
      "Kubernetes",
      [],
      "kubectl debug node/… is refused to every user, also to kubernetes-admin; list the users that debug nodes, such as emergencyUsers: [kubernetes-admin]",
    ],
  ])("no emergency entry on %s, before Enable and with it", (_platform, objects, message) => {
    const installation = { ...DEFAULT_INSTALLATION, controlPlaneNamespaces: ["openshift-etcd"] };
    const warned = (more: JsonObject) =>
      found(
        schedulingPolicy([ControlPlane({ emergencyUsers: [], ...more })]),
        [...NODES, ...objects],
        policy,
        installation,
      );
    for (const mode of ["Inform", "Enable"])
      expect(warned({ mode })).toEqual([
        `warning spec.groups[0].emergencyUsers: no emergency entry: in Enable ${message}`,
      ]);
    expect(warned({ mode: "Disable" })).toEqual([]);
    expect(warned({ mode: "Enable", emergencyUsers: ["kube:admin"] })).toEqual([]);
    expect(warned({ mode: "Enable", emergencyGroups: ["system:cluster-admins"] })).toEqual([]);
  });

  test("namespaces of OpenShift that would wait for usher", () => {
    const version = { kind: "ClusterVersion", metadata: { name: "version" } };
    const enabled = schedulingPolicy([ControlPlane({ mode: "Enable" })]);
    const listed = { ...DEFAULT_INSTALLATION, controlPlaneNamespaces: ["openshift-etcd"] };
    expect(found(enabled, [...NODES, version])).toEqual([
      expect.stringMatching(/^warning .*controlPlaneNamespaces/),
    ]);
    expect(found(enabled, [...NODES, version], policy, listed)).toEqual([]);
    expect(found(schedulingPolicy([ControlPlane({ mode: "Inform" })]), [...NODES, version])).toEqual([]);
  });

  test("none for pods that are authorised, mirrored, done, or elsewhere", () => {
    const pod = (namespace: string, more: JsonObject = {}, metadata: JsonObject = {}) => ({
      kind: "Pod",
      metadata: { name: "a", namespace, ...metadata },
      spec: { nodeName: "cp-0" },
      ...more,
    });
    const mirror = { annotations: { "kubernetes.io/config.mirror": "x" } };
    const pods = [
      pod("kube-system"),
      pod("b", {}, mirror),
      pod("c", { status: { phase: "Succeeded" } }),
      pod("d", { spec: { nodeName: "w-0" } }),
    ];
    expect(found(schedulingPolicy([ControlPlane({ mode: "Enable" })]), [...NODES, ...pods])).toEqual([]);
    const bound = pod("b", { spec: { nodeName: "cp-0", serviceAccountName: "default" } }, mirror);
    expect(found(schedulingPolicy([ControlPlane({ mode: "Enable" })]), [...NODES, bound])).toEqual([
      expect.stringContaining("not authorised: b/a;"),
    ]);
  });
});

test("other kinds are checked alike", () => {
  const config = {
    apiVersion: "scheduling.openshift.io/v1alpha1",
    kind: "NodeSchedulingPolicyConfig",
    spec: { groups: [gpu({ labelSelector: {} })] },
  };
  expect(found(config, NODES, policyConfig).join()).toMatch(/selects every node/);
  const contradictory = {
    ...masters(true),
    spec: {
      mastersSchedulable: true,
      schedulingGroups: [{ name: "ControlPlane", mode: "Enable", authorizedUsers: [] }],
    },
  };
  expect(found(contradictory, NODES, scheduler).join()).toMatch(/contradict/);
  expect(
    found(
      { ...masters(false), spec: { mastersSchedulable: false, profile: "LowNodeUtilization" } },
      NODES,
      scheduler,
    ),
  ).toEqual([]);
  const spec = {
    group: "ControlPlane",
    mode: "Inform",
    from: "2026-01-01T00:00:00Z",
    until: "2026-01-03T00:00:00Z",
    reason: "x",
  };
  const day = { apiVersion: "usher.dev/v1alpha1", kind: "NodeGuardOverride", metadata: { name: "o" }, spec };
  expect(found(day, NODES, override).join()).toMatch(/at most 24 hours/);
  expect(found({ ...day, spec: { ...spec, until: "2026-01-02T00:00:00Z" } }, NODES, override)).toEqual([]);
});
