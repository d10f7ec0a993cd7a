import type { JsonObject } from "../../core/json.ts";
import type { ConfigurationWrapper } from "../../core/policy/configuration.ts";
import type { Kind, Sample } from "../../core/policy/kind.ts";
import { checkOverride } from "./check/check-override.ts";
import { checkPolicy } from "./check/check-policy.ts";
import { CONTROL_PLANE } from "./groups/group.ts";
import { configSpec, policySpec, schedulerSpec } from "./groups/group-schema.ts";
import { OVERRIDE_RULES, overrideSpec, overrideStatus } from "./groups/override.ts";
import { CONFIGS, type GuardPolicy, OVERRIDES, POLICIES, READERS, SCHEDULERS } from "./groups/policy.ts";
import { GATE_ON, SHIPS_SCHEDULER } from "./settings.ts";
import { policyStatus } from "./status/policy-status.ts";

const GROUP = "scheduling.openshift.io";
const VERSION = "v1alpha1";

const ADMISSION: ConfigurationWrapper = {
  apiVersions: ["apiserver.config.k8s.io/v1"],
  kind: "AdmissionConfiguration",
  paths: [["plugins", "*", "configuration"]],
};

const KUBE_API_SERVER: ConfigurationWrapper = {
  apiVersions: ["kubecontrolplane.config.openshift.io/v1"],
  kind: "KubeAPIServerConfig",
  paths: [["admission", "pluginConfig", "*", "configuration"]],
};

/** The plugin's own configuration; `alphav1` is the enhancement's spelling of the version. */
export const policyConfig: Kind<GuardPolicy> = {
  group: GROUP,
  kind: "NodeSchedulingPolicyConfig",
  plural: "nodeschedulingpolicyconfigs",
  singular: "nodeschedulingpolicyconfig",
  scope: "Cluster",
  standing: "file",
  configuration: {
    apiVersions: { [`${GROUP}/${VERSION}`]: VERSION, [`${GROUP}/alphav1`]: VERSION },
    deprecated: { [`${GROUP}/alphav1`]: `${GROUP}/${VERSION}` },
    wrappers: [ADMISSION, KUBE_API_SERVER],
  },
  partial: true,
  summary: "defines groups of protected nodes and who may use them",
  versions: [{ name: VERSION, storage: true, spec: configSpec }],
  registered: [GATE_ON],
  check: checkPolicy(CONFIGS, ["spec", "groups"]),
  prepare: reader(CONFIGS),
};

function podOn(node: string, namespace: string, serviceAccountName: string): JsonObject {
  const containers = [{ name: "app", image: "example.com/app:1.0" }];
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "app", namespace },
    spec: { nodeName: node, serviceAccountName, containers },
  };
}

const GPU_LABEL = { "node-role.kubernetes.io/gpu": "" };
const KUBE_SCHEDULER = "system:kube-scheduler";

const GPU_NODES: Sample = {
  name: "cluster",
  nameIsFixed: true,
  configuration: {
    featureGates: { OpenShiftNodeSchedulingPolicy: true },
    modules: { "node-guard": { builtIn: "Kubernetes" } },
  },
  spec: {
    groups: [
      {
        name: "gpu",
        labelSelector: { matchLabels: GPU_LABEL },
        mode: "Inform",
        assigners: [KUBE_SCHEDULER],
        workloads: ["ml/trainer", "usher-system/usher"],
        emergencyUsers: ["sre"],
      },
    ],
  },
  objects: [
    { apiVersion: "v1", kind: "Node", metadata: { name: "gpu-0", labels: GPU_LABEL } },
    { apiVersion: "v1", kind: "Node", metadata: { name: "worker-0" } },
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "ml" } },
    { apiVersion: "v1", kind: "Namespace", metadata: { name: "shop" } },
  ],
  cases: [
    {
      name: "the trainer may run on a GPU node",
      object: podOn("gpu-0", "ml", "trainer"),
      user: KUBE_SCHEDULER,
      expect: { verdict: "allow", events: [] },
    },
    {
      name: "an emergency user may run any pod there",
      object: podOn("gpu-0", "shop", "web"),
      user: "sre",
      expect: { verdict: "allow", events: [] },
    },
    {
      name: "any other pod is reported, and with mode Enable it is refused",
      object: podOn("gpu-0", "shop", "web"),
      user: KUBE_SCHEDULER,
      expect: { verdict: "allow", events: [{ type: "Warning", reason: "NodeGuardWouldDeny" }] },
    },
  ],
  equivalent: [
    {
      policy: "UsherConfiguration",
      path: "spec.modules.node-guard.builtIn",
      reason: "no case is about control-plane nodes",
    },
    {
      policy: "NodeSchedulingPolicy/cluster",
      path: "spec.groups[0].workloads[1]",
      reason: "the webhook does not judge usher's own namespace; mode Enable requires the entry",
    },
  ],
};

export const policy: Kind<GuardPolicy> = {
  group: GROUP,
  kind: "NodeSchedulingPolicy",
  plural: "nodeschedulingpolicies",
  singular: "nodeschedulingpolicy",
  scope: "Cluster",
  standing: "resource",
  summary:
    "sets modes of groups of protected nodes, and adds entries and groups; only the object named cluster counts",
  versions: [
    {
      name: VERSION,
      storage: true,
      spec: policySpec,
      status: policyStatus,
      columns: [
        {
          name: "Control plane mode",
          type: "string",
          jsonPath: `.status.groups[?(@.name=="${CONTROL_PLANE}")].effectiveMode`,
        },
        { name: "Valid", type: "string", jsonPath: '.status.conditions[?(@.type=="Valid")].status' },
        {
          name: "Consistent",
          type: "string",
          jsonPath: '.status.conditions[?(@.type=="Consistent")].status',
        },
        {
          name: "No violations",
          type: "string",
          jsonPath: '.status.conditions[?(@.type=="NoViolations")].status',
        },
      ],
    },
  ],
  registered: [GATE_ON],
  sample: () => GPU_NODES,
  check: checkPolicy(POLICIES, ["spec", "groups"]),
  prepare: reader(POLICIES),
};

export const scheduler: Kind<GuardPolicy> = {
  group: "config.openshift.io",
  kind: "Scheduler",
  plural: "schedulers",
  singular: "scheduler",
  scope: "Cluster",
  standing: "resource",
  summary: "whether control-plane nodes take the pods of users; only the object named cluster counts",
  versions: [{ name: "v1", storage: true, spec: schedulerSpec }],
  registered: [GATE_ON, SHIPS_SCHEDULER],
  takeOver: "never",
  check: checkPolicy(SCHEDULERS, ["spec", "schedulingGroups"]),
  prepare: reader(SCHEDULERS),
};

export const override: Kind<GuardPolicy> = {
  group: "usher.dev",
  kind: "NodeGuardOverride",
  plural: "nodeguardoverrides",
  singular: "nodeguardoverride",
  scope: "Cluster",
  grantedBy: "usher-node-guard-override",
  standing: "resource",
  summary:
    "weakens the mode of a group of protected nodes for a day at most; who may create it has the emergency right",
  versions: [
    {
      name: VERSION,
      storage: true,
      spec: overrideSpec,
      status: overrideStatus,
      celRules: OVERRIDE_RULES,
      columns: [
        { name: "Group", type: "string", jsonPath: ".spec.group" },
        { name: "Mode", type: "string", jsonPath: ".spec.mode" },
        { name: "Until", type: "string", jsonPath: ".spec.until" },
        { name: "Granted by", type: "string", jsonPath: ".status.grantedBy" },
        { name: "Active", type: "string", jsonPath: '.status.conditions[?(@.type=="Active")].status' },
      ],
    },
  ],
  registered: [GATE_ON],
  check: checkOverride,
  prepare: reader(OVERRIDES),
};

function reader(resource: string): Kind<GuardPolicy>["prepare"] {
  return (object) => READERS[resource]?.(object) ?? { policy: undefined, problems: [] };
}
