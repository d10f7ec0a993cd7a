import type { Configuration } from "../../src/cli/configuration/configuration.ts";
import type { Fact, Need } from "../../src/core/decision/need.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { CONTROL_PLANE_LABEL, controlPlaneNode, GROUP, worker } from "../builders/guard.ts";
import { rule } from "../builders/node.ts";
import { clusterPolicy, namespace, namespacedPolicy } from "../builders/policy.ts";
import { limits } from "../builders/project-limit.ts";
import { many } from "./case.ts";

/** How much of a cluster is in the view. */
export interface Size {
  readonly nodes: number;
  /** The number of objects of each kind. */
  readonly policies: number;
}

/**
 * A twelfth of the nodes that Kubernetes is tested with, and more policies than any cluster has. The benchmark has the
 * full number.
 */
export const LARGE: Size = { nodes: 5_000, policies: 1_000 };
export const SMALL: Size = { nodes: 20, policies: 10 };

/** An installation in one of the modules' modes, and its cluster. */
export interface World {
  readonly name: string;
  readonly configuration: Configuration;
  readonly objects: (size: Size) => readonly JsonObject[];
}

const LEVELS = {
  "pod-security.kubernetes.io/enforce": "restricted",
  "pod-security.kubernetes.io/audit": "baseline",
  "pod-security.kubernetes.io/warn": "restricted",
  "pod-security.kubernetes.io/warn-version": "v1.24",
};

const GUARD = {
  ...GROUP,
  guardAccessOnProtectedNodes: true,
  protectNodeLabels: true,
  checkRequesterOnSelection: true,
};

/** Every tenth node is guarded. */
function nodes(count: number): JsonObject[] {
  return many(count, (i) => {
    const labels = { pool: `pool-${i % 50}`, "topology.kubernetes.io/zone": `zone-${i % 5}` };
    return i % 10 === 0 ? controlPlaneNode(`node-${i}`, labels) : worker(`node-${i}`, labels);
  });
}

/** Policies of every kind: a tenth of them select the tenant. */
function policies(count: number): JsonObject[] {
  const tenant = (i: number) => (i % 10 === 0 ? "shop" : `other-${i}`);
  return [
    ...many(count / 2, (i) =>
      namespacedPolicy(tenant(i), `p${i}`, {
        podSelector: {},
        nodeSelector: { [`k${i}`]: "a" },
        enforcement: "Refuse",
        failurePolicy: "Fail",
      }),
    ),
    ...many(count / 2, (i) =>
      clusterPolicy(`c${i}`, {
        namespaceSelector: { matchLabels: { team: tenant(i) } },
        podSelector: {},
        tolerations: [{ key: `t${i}`, operator: "Exists" }],
        onUpdate: "Inject",
      }),
    ),
    ...many(count, (i) => ({
      apiVersion: "usher.dev/v1alpha1",
      kind: "PodSecurityException",
      metadata: { name: `e${i}` },
      spec: {
        namespaces: [tenant(i)],
        checks: ["privileged", "hostPorts", "capabilities_restricted", "allowPrivilegeEscalation"],
        images: [`registry.example/${i}/*`],
        expires: "2023-12-01T00:00:00Z",
      },
    })),
    ...many(count, (i) =>
      rule(`r${i}`, { nodeNamePatterns: [`site-${i}-.*`], labels: { "example.com/pool": `p${i}` } }),
    ),
    limits({ limits: [{ maxProjects: 10 }], maxProjectsForServiceAccounts: 5, namespaces: {} }),
    ...many(count, (i) => ({
      ...namespace(`project-${i}`),
      metadata: {
        name: `project-${i}`,
        annotations: { "openshift.io/requester": i % 10 === 0 ? "jane" : `u${i}` },
      },
    })),
  ];
}

const objects = (size: Size): JsonObject[] => [
  namespace("shop", { team: "shop", ...LEVELS }),
  namespace("kube-system", LEVELS),
  ...nodes(size.nodes),
  ...policies(size.policies),
];

/** Every setting that adds a hook to a module, or makes one do more. */
export const WORLDS: readonly World[] = [
  {
    name: "everything on",
    configuration: {
      kubernetesVersion: "v1.37.1",
      featureGates: { OpenShiftNodeSchedulingPolicy: true },
      modules: {
        "node-guard": { policy: { groups: [GUARD] } },
        "pod-os": {
          podSecurity: {
            mode: "Replace",
            templates: "Deny",
            windowsChecks: true,
            ephemeralContainers: "Added",
          },
          os: { write: true, harden: ["shop"], nodeMismatch: "Deny", contradictions: "Deny" },
        },
      },
    },
    objects,
  },
  {
    name: "reporting only",
    configuration: {
      kubernetesVersion: "v1.37.1",
      featureGates: { OpenShiftNodeSchedulingPolicy: true },
      modules: {
        "node-guard": { policy: { groups: [{ ...GUARD, mode: "Inform" }] } },
        "pod-os": { podSecurity: { mode: "Complement" }, os: { contradictions: "Warn" } },
      },
    },
    objects,
  },
  { name: "without the OS of pods", configuration: { featureGates: { IdentifyPodOS: false } }, objects },
];

/** Objects of the API server that are not in the view: the pod of a binding, and the pods of the tenant. */
export function factOf(need: Need, pod: JsonObject | undefined, size: Size): Fact {
  if ("access" in need) return { found: { allowed: false }, complete: true };
  if ("list" in need) {
    const found = need.list.resource === "pods" ? many(2 * size.nodes, () => pod ?? {}) : [];
    return { found, complete: true };
  }
  const { resource, name } = need.get;
  if (resource === "pods" && pod !== undefined) return { found: pod, complete: true };
  if (resource === "nodes") {
    const labels = { [CONTROL_PLANE_LABEL]: "" };
    return { found: controlPlaneNode(name, labels), complete: true };
  }
  return { absent: "NotFound" };
}
