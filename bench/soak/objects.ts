// What a soak finds in its cluster: objects for every module.

import type { JsonObject } from "../../src/core/json.ts";
import { controlPlanePolicy } from "../../test/builders/guard.ts";
import { grantedNamespaces } from "../../test/cluster/access/granted.ts";
import { ARMS, POLICIES, podFor } from "../cluster/pod.ts";
import { NAMESPACE_OBJECT, policy } from "../fixtures/policies.ts";

export const WORKLOADS = 10;
export const TENANT = "alice";

export const workloadsPath = `/apis/apps/v1/namespaces/${ARMS[0].namespace}/deployments`;

export function nodeName(i: number): string {
  return `soak-${i}`;
}

/** All modules on. */
export const CONFIGURATION: JsonObject = {
  apiVersion: "usher.dev/v1alpha1",
  kind: "UsherConfiguration",
  spec: {
    featureGates: { OpenShiftNodeSchedulingPolicy: true },
    modules: { "pod-os": { podSecurity: { mode: "Replace" }, os: { write: true } } },
  },
};

function workload(i: number): JsonObject {
  const pod = podFor(i) as { metadata: JsonObject; spec: JsonObject };
  const labels = pod.metadata["labels"] ?? {};
  return {
    apiVersion: "apps/v1",
    kind: "Deployment",
    metadata: { name: `workload-${i}`, namespace: ARMS[0].namespace },
    spec: {
      replicas: 0,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: pod.spec },
    },
  };
}

export const OBJECTS: readonly JsonObject[] = [
  NAMESPACE_OBJECT,
  ...Array.from({ length: POLICIES }, (_, i) => policy(i)),
  ...Array.from({ length: WORKLOADS }, (_, i) => workload(i)),
  {
    apiVersion: "node-labels.openshift.io/v1beta1",
    kind: "Labels",
    metadata: { name: "pools", namespace: "default" },
    spec: { nodeNamePatterns: ["soak-.*"], labels: { pool: "soak" } },
  },
  {
    apiVersion: "operator.project.openshift.io/v1",
    kind: "ProjectRequestLimit",
    metadata: { name: "cluster" },
    spec: { limits: [{ users: [TENANT], maxProjects: 1_000 }], namespaces: {} },
  },
  controlPlanePolicy(),
  ...grantedNamespaces(TENANT, "create"),
];
