import type { Installation } from "../../installation/installation.ts";
import type { JsonObject } from "../../json.ts";
import { OWN_LABELS, OWN_NAMES } from "../names.ts";

/** Settings of scraping by Prometheus. */
export interface MonitorOptions {
  /** The labels by which a Prometheus selects its monitors. @default none */
  readonly labels?: Readonly<Record<string, string>>;
  /** `30s`. @default Prometheus' own */
  readonly interval?: string;
}

export interface MonitoringOptions {
  readonly serviceMonitor?: MonitorOptions;
  readonly podMonitor?: MonitorOptions;
}

/** The port of health and metrics, by the name that pods and Services have for it. */
export const OPS_PORT_NAME = "ops";

/** Replicas and watchdog: of usher's pods only these have a port of that name. */
const SCRAPED = { "app.kubernetes.io/name": OWN_LABELS["app.kubernetes.io/name"] };

/** On the Service of the metrics, so that a monitor selects it and not that of the webhook. */
const METRICS_LABELS = {
  "app.kubernetes.io/name": OWN_LABELS["app.kubernetes.io/name"],
  "app.kubernetes.io/component": "metrics",
};

/** Only to be discovered: Prometheus scrapes every pod, not any one of them. */
export function metricsService({ namespace }: Installation, port: number): JsonObject {
  return {
    apiVersion: "v1",
    kind: "Service",
    metadata: { name: OWN_NAMES.metrics, namespace, labels: METRICS_LABELS },
    spec: {
      clusterIP: "None",
      selector: SCRAPED,
      ports: [{ name: OPS_PORT_NAME, port, protocol: "TCP", targetPort: OPS_PORT_NAME }],
    },
  };
}

/** Objects of the Prometheus operator: none by default, because its CRDs may be missing. One of them is enough. */
export function monitors(
  installation: Installation,
  { serviceMonitor, podMonitor }: MonitoringOptions,
): JsonObject[] {
  return [
    ...(serviceMonitor === undefined
      ? []
      : [monitor(installation, "ServiceMonitor", METRICS_LABELS, "endpoints", serviceMonitor)]),
    ...(podMonitor === undefined
      ? []
      : [monitor(installation, "PodMonitor", SCRAPED, "podMetricsEndpoints", podMonitor)]),
  ];
}

function monitor(
  { namespace }: Installation,
  kind: string,
  selected: Readonly<Record<string, string>>,
  list: string,
  { labels, interval }: MonitorOptions,
): JsonObject {
  return {
    apiVersion: "monitoring.coreos.com/v1",
    kind,
    metadata: { name: OWN_NAMES.metrics, namespace, ...(labels === undefined ? {} : { labels }) },
    spec: {
      selector: { matchLabels: selected },
      [list]: [{ port: OPS_PORT_NAME, path: "/metrics", ...(interval === undefined ? {} : { interval }) }],
    },
  };
}
