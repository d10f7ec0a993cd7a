import type { JsonObject } from "../../src/core/json.ts";

const container = { name: "m", image: "a" };
const pod = (spec: JsonObject, more: JsonObject = {}): JsonObject => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web" },
  spec: { containers: [container], ...spec },
  ...more,
});
const deployment = (spec: JsonObject, podSpec: JsonObject = {}): JsonObject => ({
  apiVersion: "apps/v1",
  kind: "Deployment",
  metadata: { name: "web" },
  spec: {
    selector: { matchLabels: { app: "web" } },
    template: { metadata: { labels: { app: "web" } }, spec: { containers: [container], ...podSpec } },
    ...spec,
  },
});

export const PODS = "/api/v1/namespaces/default/pods";
export const DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments";

/** Fields that an API server rejects with `fieldValidation=Strict`: description, resource, object, expected problem. */
export const BAD_FIELDS: readonly (readonly [string, string, JsonObject, string])[] = [
  [
    "a typo in a container",
    PODS,
    pod({ containers: [{ ...container, imagePullPolcy: "Always" }] }),
    'spec.containers[0].imagePullPolcy: unknown field, has no effect; did you mean "imagePullPolicy"?',
  ],
  [
    "a field of the pod in a container",
    PODS,
    pod({ containers: [{ ...container, volumes: [] }] }),
    "spec.containers[0].volumes: unknown field, has no effect; did you mean spec.volumes?",
  ],
  [
    "a field of the pod in the workload",
    DEPLOYMENTS,
    deployment({ nodeSelector: { a: "b" } }),
    "spec.nodeSelector: unknown field, has no effect; did you mean spec.template.spec.nodeSelector?",
  ],
  [
    "labels beside metadata",
    DEPLOYMENTS,
    deployment({ labels: { a: "b" } }),
    "spec.labels: unknown field, has no effect; did you mean spec.template.metadata.labels?",
  ],
  [
    "a field in another case",
    PODS,
    pod({ NodeName: "a" }),
    'spec.NodeName: unknown field, has no effect; did you mean "nodeName"?',
  ],
  [
    "a field beside the spec",
    PODS,
    pod({}, { sepc: {} }),
    'sepc: unknown field, has no effect; did you mean "spec"?',
  ],
  [
    "a field that was removed from the version",
    PODS,
    pod({ workloadRef: {} }),
    "spec.workloadRef: unknown field, has no effect; Kubernetes had it until 1.35; this is 1.37",
  ],
  [
    "an integer in quotes",
    DEPLOYMENTS,
    deployment({ replicas: "3" }),
    'spec.replicas: must be an integer, got "3"; write it without quotes',
  ],
  [
    "a fraction",
    PODS,
    pod({ terminationGracePeriodSeconds: 1.5 }),
    "spec.terminationGracePeriodSeconds: must be an integer, got 1.5",
  ],
  [
    "an integer of more than 32 bits",
    DEPLOYMENTS,
    deployment({ replicas: 3_000_000_000 }),
    "spec.replicas: must be at most 2147483647, got 3000000000",
  ],
  [
    "a number in place of a string",
    PODS,
    pod({ containers: [{ ...container, env: [{ name: "A", value: 1 }] }] }),
    "spec.containers[0].env[0].value: must be a string, got 1; write it in quotes",
  ],
  [
    "a boolean in place of a quantity",
    PODS,
    pod({ containers: [{ ...container, resources: { limits: { cpu: true } } }] }),
    "spec.containers[0].resources.limits.cpu: must be a number or a string, got true",
  ],
  [
    "a list in place of a port",
    PODS,
    pod({ containers: [{ ...container, livenessProbe: { httpGet: { port: [80] } } }] }),
    "spec.containers[0].livenessProbe.httpGet.port: must be an integer or a string, got [80]",
  ],
  [
    "a map in place of a list",
    PODS,
    pod({ containers: [{ ...container, env: { A: "b" } }] }),
    'spec.containers[0].env: must be a list, got {"A":"b"}',
  ],
  [
    "a string in place of a boolean",
    PODS,
    pod({ hostNetwork: "yes" }),
    'spec.hostNetwork: must be a boolean, got "yes"',
  ],
  [
    "a string in place of an object",
    PODS,
    pod({ affinity: "a" }),
    'spec.affinity: must be an object, got "a"',
  ],
];

/** Objects that an API server accepts. */
export const GOOD_FIELDS: readonly (readonly [string, string, JsonObject])[] = [
  [
    "null for a field that is not set",
    PODS,
    { ...pod({ nodeSelector: null, volumes: null }), metadata: { name: "web", creationTimestamp: null } },
  ],
  [
    "quantities as numbers and strings",
    PODS,
    pod({ containers: [{ ...container, resources: { limits: { cpu: 1, memory: "1Gi" } } }] }),
  ],
  [
    "ports by number and by name",
    PODS,
    pod({
      containers: [
        {
          ...container,
          livenessProbe: { httpGet: { port: 80 } },
          startupProbe: { tcpSocket: { port: "a" } },
        },
      ],
    }),
  ],
  ["an empty object for a field", DEPLOYMENTS, deployment({ strategy: {} }, { securityContext: {} })],
];
