import type { Installation } from "../installation/installation.ts";
import type { JsonObject } from "../json.ts";
import { certificateMount, serviceAnnotations } from "./certificates.ts";
import { type MonitoringOptions, metricsService, monitors, OPS_PORT_NAME } from "./monitoring/monitors.ts";
import { OWN_LABELS, OWN_NAMES } from "./names.ts";
import { networkPolicies, WEBHOOK_PORT_NAME } from "./pods/network-policy.ts";
import {
  CONFIGURATION,
  CONFIGURATION_FILE,
  CONTAINER_SECURITY,
  fieldVariable,
  POD_SECURITY,
  PRIORITY_CLASS,
  podPlace,
  TOKEN_PATH,
} from "./pods/restricted-pod.ts";

export interface WorkloadOptions {
  readonly image: string;
  /** @default 2 */
  readonly replicas?: number;
  /** The spec of an UsherConfiguration, as the replicas shall read it. */
  readonly configuration?: JsonObject;
  /** More labels for the pods, for network policies or a cloud. */
  readonly podLabels?: Readonly<Record<string, string>>;
  /** Objects of the Prometheus operator. @default none */
  readonly monitoring?: MonitoringOptions;
  /** Tolerations of the pods for taints that usher itself sets. */
  readonly tolerations?: readonly JsonObject[];
}

const WEBHOOK_PORT = 8443;
export const OPS_PORT = 8080;
export const SERVICE_PORT = 443;

/** Two: one may fail or be replaced while the other answers. */
export const REPLICAS = 2;

/** Serving after SIGTERM takes 5 s and the longest call 30 s, and then the lease is released. */
const GRACE_SECONDS = 45;

export const CONFIGURATION_ANNOTATION = "usher.dev/configuration";

export const CONTAINER = "usher";

/** Its selector is immutable, so it contains no label that might change. */
export const POD_LABELS = {
  "app.kubernetes.io/name": OWN_LABELS["app.kubernetes.io/name"],
  "app.kubernetes.io/component": "admission",
};

/** The Deployment and its dependencies, in the order of application. */
export function workloadObjects(installation: Installation, options: WorkloadOptions): JsonObject[] {
  const { namespace } = installation;
  const { replicas = REPLICAS } = options;
  const annotations = serviceAnnotations(installation);
  const file = configurationFile(installation, options);
  return [
    {
      apiVersion: "v1",
      kind: "ConfigMap",
      metadata: { name: OWN_NAMES.configuration, namespace },
      data: { [CONFIGURATION_FILE]: file },
    },
    {
      apiVersion: "v1",
      kind: "Service",
      metadata: {
        name: OWN_NAMES.service,
        namespace,
        ...(Object.keys(annotations).length === 0 ? {} : { annotations }),
      },
      spec: {
        selector: POD_LABELS,
        ports: [
          { name: WEBHOOK_PORT_NAME, port: SERVICE_PORT, protocol: "TCP", targetPort: WEBHOOK_PORT_NAME },
        ],
      },
    },
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: OWN_NAMES.deployment, namespace },
      spec: {
        replicas,
        selector: { matchLabels: POD_LABELS },
        // Never fewer than desired: while usher is down, nothing is evaluated.
        strategy: { type: "RollingUpdate", rollingUpdate: { maxUnavailable: 0, maxSurge: 1 } },
        template: {
          metadata: {
            labels: { ...OWN_LABELS, ...options.podLabels, ...POD_LABELS },
            annotations: configurationNote(file),
          },
          spec: podSpec(installation, options),
        },
      },
    },
    {
      apiVersion: "policy/v1",
      kind: "PodDisruptionBudget",
      metadata: { name: OWN_NAMES.deployment, namespace },
      // Not `minAvailable`: with a single replica its node could never be drained.
      spec: { maxUnavailable: 1, selector: { matchLabels: POD_LABELS } },
    },
    ...networkPolicies(installation),
    metricsService(installation, OPS_PORT),
    ...monitors(installation, options.monitoring ?? {}),
  ];
}

/** Fits the Pod Security level `restricted`. */
function podSpec(installation: Installation, { image, tolerations = [] }: WorkloadOptions): JsonObject {
  const certificate = certificateMount(installation);
  return {
    serviceAccountName: OWN_NAMES.account,
    terminationGracePeriodSeconds: GRACE_SECONDS,
    priorityClassName: PRIORITY_CLASS,
    securityContext: POD_SECURITY,
    ...podPlace(installation, tolerations),
    // Preferences, not requirements: on a single node both replicas must run too.
    topologySpreadConstraints: ["kubernetes.io/hostname", "topology.kubernetes.io/zone"].map(
      (topologyKey) => ({
        maxSkew: 1,
        topologyKey,
        whenUnsatisfiable: "ScheduleAnyway",
        labelSelector: { matchLabels: POD_LABELS },
      }),
    ),
    containers: [
      {
        name: CONTAINER,
        image,
        args: [
          "serve",
          "--bind=0.0.0.0",
          `--port=${WEBHOOK_PORT}`,
          `--ops-port=${OPS_PORT}`,
          CONFIGURATION.flag,
          ...certificate.args,
        ],
        env: [
          fieldVariable("POD_NAME", "metadata.name"),
          fieldVariable("POD_NAMESPACE", "metadata.namespace"),
          fieldVariable("POD_UID", "metadata.uid"),
          // Node sizes its heap by the memory limit below: half of it. The young generation is additional, so it is
          // kept small, as in bin/usher; reviews are short-lived, and it is collected in a millisecond either way.
          // Garbage is collected after the sync, before serving.
          { name: "NODE_OPTIONS", value: "--max-semi-space-size=8 --expose-gc" },
          TOKEN_PATH,
        ],
        ports: [
          { name: WEBHOOK_PORT_NAME, containerPort: WEBHOOK_PORT, protocol: "TCP" },
          { name: OPS_PORT_NAME, containerPort: OPS_PORT, protocol: "TCP" },
        ],
        // It answers no probe before it has read the cluster. That takes seconds, or until it has permission: killing
        // it would only restart it.
        startupProbe: {
          httpGet: { path: "/livez", port: OPS_PORT_NAME },
          periodSeconds: 1,
          failureThreshold: 600,
        },
        readinessProbe: {
          httpGet: { path: "/readyz", port: OPS_PORT_NAME },
          periodSeconds: 2,
          failureThreshold: 2,
        },
        livenessProbe: {
          httpGet: { path: "/livez", port: OPS_PORT_NAME },
          periodSeconds: 10,
          failureThreshold: 3,
        },
        // Measured: 175 MiB with 5,000 nodes, 50,000 pods, 10,000 namespaces and 1,000 policies (docs/configuring.md).
        // No CPU limit: throttling would delay every pod of the cluster.
        resources: { requests: { cpu: "100m", memory: "192Mi" }, limits: { memory: "512Mi" } },
        securityContext: CONTAINER_SECURITY,
        volumeMounts: [CONFIGURATION.mount, ...certificate.mounts, { name: "tmp", mountPath: "/tmp" }],
      },
    ],
    volumes: [CONFIGURATION.volume, ...certificate.volumes, { name: "tmp", emptyDir: {} }],
  };
}

/** The file that all pods of usher's read. */
export function configurationFile(
  { namespace }: Installation,
  { configuration = {} }: WorkloadOptions,
): string {
  return JSON.stringify({
    apiVersion: "usher.dev/v1alpha1",
    kind: "UsherConfiguration",
    spec: { namespace, ...configuration },
  });
}

/** The file is read at start: with another one the pods must be other ones. */
export function configurationNote(file: string): JsonObject {
  return { [CONFIGURATION_ANNOTATION]: fingerprint(file) };
}

/** FNV-1a: it need only differ if the text does, and core has no cryptography. */
function fingerprint(text: string): string {
  let hash = 0xcbf29ce484222325n;
  for (const character of text) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(character.codePointAt(0) ?? 0)) * 0x100000001b3n);
  }
  return hash.toString(16);
}
