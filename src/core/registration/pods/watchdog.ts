import type { Installation } from "../../installation/installation.ts";
import { configuredValues, holds, RUNS_WATCHDOG } from "../../installation/setting-condition.ts";
import type { JsonObject } from "../../json.ts";
import type { Declarations } from "../../module/module.ts";
import type { DeclaredRole } from "../../module/rights.ts";
import { WEBHOOKS } from "../module-rights.ts";
import { OPS_PORT_NAME } from "../monitoring/monitors.ts";
import { OWN_LABELS, OWN_NAMES } from "../names.ts";
import {
  CONTAINER,
  configurationFile,
  configurationNote,
  OPS_PORT,
  POD_LABELS,
  type WorkloadOptions,
} from "../workload.ts";
import {
  CONFIGURATION,
  CONTAINER_SECURITY,
  fieldVariable,
  POD_SECURITY,
  PRIORITY_CLASS,
  podPlace,
  TOKEN_PATH,
} from "./restricted-pod.ts";

const NAME = OWN_NAMES.watchdog;

/** Not those of the replicas: the Service must not select these pods. */
export const WATCHDOG_LABELS = {
  "app.kubernetes.io/name": OWN_LABELS["app.kubernetes.io/name"],
  "app.kubernetes.io/component": "watchdog",
};

/**
 * A lost node takes the watchdog with it. It is rescheduled after this time, not after the usual five minutes, and only
 * then begins to count: so that everything still fits into the two minutes that opening may take.
 */
const LOST_NODE_SECONDS = 20;

/** The watchdog's permissions. It changes only both webhook configurations, by name. */
export function watchdogRoles(): DeclaredRole[] {
  const role = { name: NAME, own: true, account: NAME } as const;
  return [
    {
      ...role,
      kind: "ClusterRole",
      rights: [
        {
          group: "admissionregistration.k8s.io",
          resources: WEBHOOKS,
          names: [OWN_NAMES.webhooks],
          verbs: ["get", "patch"],
          why: "open fail-closed entries that may be opened while no replica is ready",
          when: RUNS_WATCHDOG,
        },
      ],
    },
    {
      ...role,
      kind: "Role",
      rights: [
        {
          group: "discovery.k8s.io",
          resources: ["endpointslices"],
          verbs: ["list"],
          why: "see whether a replica is ready",
          when: RUNS_WATCHDOG,
        },
        {
          group: "apps",
          resources: ["deployments"],
          names: [OWN_NAMES.deployment],
          verbs: ["get"],
          why: "record an event about it",
          when: RUNS_WATCHDOG,
        },
        {
          group: "events.k8s.io",
          resources: ["events"],
          verbs: ["create"],
          why: "record that webhooks were opened",
          when: RUNS_WATCHDOG,
        },
      ],
    },
  ];
}

export function watchdogAccount(declarations: Declarations): JsonObject[] {
  if (!isOn(declarations)) return [];
  const { namespace } = declarations.installation;
  return [{ apiVersion: "v1", kind: "ServiceAccount", metadata: { name: NAME, namespace } }];
}

function isOn({ installation, gates }: Declarations): boolean {
  return holds(RUNS_WATCHDOG, configuredValues(installation, gates));
}

/**
 * The Deployment that opens webhooks while no replica is ready, apart from the replicas; none if the configuration
 * turns it off.
 */
export function watchdogWorkload(declarations: Declarations, options: WorkloadOptions): JsonObject[] {
  if (!isOn(declarations)) return [];
  const { installation } = declarations;
  const { namespace } = installation;
  return [
    {
      apiVersion: "apps/v1",
      kind: "Deployment",
      metadata: { name: NAME, namespace },
      spec: {
        // One is enough: its observations are recorded for the next one.
        replicas: 1,
        selector: { matchLabels: WATCHDOG_LABELS },
        template: {
          metadata: {
            labels: { ...OWN_LABELS, ...options.podLabels, ...WATCHDOG_LABELS },
            annotations: configurationNote(configurationFile(installation, options)),
          },
          spec: podSpec(installation, options),
        },
      },
    },
  ];
}

function podSpec(installation: Installation, { image, tolerations = [] }: WorkloadOptions): JsonObject {
  return {
    serviceAccountName: NAME,
    // It has no state that would be lost.
    terminationGracePeriodSeconds: 5,
    priorityClassName: PRIORITY_CLASS,
    securityContext: POD_SECURITY,
    ...podPlace(installation, [
      ...tolerations,
      ...["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"].map((key) => ({
        key,
        operator: "Exists",
        effect: "NoExecute",
        tolerationSeconds: LOST_NODE_SECONDS,
      })),
    ]),
    // On another node than the replicas, if there is one.
    affinity: {
      podAntiAffinity: {
        preferredDuringSchedulingIgnoredDuringExecution: [
          {
            weight: 100,
            podAffinityTerm: {
              topologyKey: "kubernetes.io/hostname",
              labelSelector: { matchLabels: POD_LABELS },
            },
          },
        ],
      },
    },
    containers: [
      {
        name: CONTAINER,
        image,
        args: ["watchdog", "--bind=0.0.0.0", `--ops-port=${OPS_PORT}`, CONFIGURATION.flag],
        env: [
          fieldVariable("POD_NAME", "metadata.name"),
          // One small list every two seconds: a small heap.
          { name: "NODE_OPTIONS", value: "--max-semi-space-size=1 --max-old-space-size=32" },
          TOKEN_PATH,
        ],
        ports: [{ name: OPS_PORT_NAME, containerPort: OPS_PORT, protocol: "TCP" }],
        // Ready once it has seen the replicas: from then on it counts.
        readinessProbe: { httpGet: { path: "/readyz", port: OPS_PORT_NAME }, periodSeconds: 2 },
        livenessProbe: { httpGet: { path: "/livez", port: OPS_PORT_NAME }, periodSeconds: 30 },
        // Measured: 83 MiB for any cluster size, mostly Node itself: see docs/configuring.md.
        resources: { requests: { cpu: "10m", memory: "96Mi" }, limits: { memory: "160Mi" } },
        securityContext: CONTAINER_SECURITY,
        volumeMounts: [CONFIGURATION.mount],
      },
    ],
    volumes: [CONFIGURATION.volume],
  };
}
