import { expect, test } from "vitest";
import { DEFAULT_INSTALLATION } from "../../installation/installation.ts";
import { at } from "../../json.ts";
import { workloadObjects } from "../workload.ts";
import type { MonitoringOptions } from "./monitors.ts";

function objects(monitoring?: MonitoringOptions) {
  const options = { image: "usher:1", ...(monitoring === undefined ? {} : { monitoring }) };
  return workloadObjects({ ...DEFAULT_INSTALLATION, namespace: "guests" }, options);
}

/** Replicas and watchdog alike. */
const PODS = { "app.kubernetes.io/name": "usher" };

const of = (kind: string, all = objects()) =>
  all.filter((object) => object["kind"] === kind && at(object, "metadata", "name") === "usher-metrics");

test("a Service selects the metrics of every replica and of the watchdog, and has a label that the webhook's does not have", () => {
  const [service, ...more] = of("Service");
  expect(more).toEqual([]);
  expect(service).toEqual({
    apiVersion: "v1",
    kind: "Service",
    metadata: {
      name: "usher-metrics",
      namespace: "guests",
      labels: { "app.kubernetes.io/name": "usher", "app.kubernetes.io/component": "metrics" },
    },
    spec: {
      clusterIP: "None",
      selector: PODS,
      ports: [{ name: "ops", port: 8080, protocol: "TCP", targetPort: "ops" }],
    },
  });
});

test("no object of the Prometheus operator by default", () => {
  const groups = objects().map(({ apiVersion }) => String(apiVersion));
  expect(groups.filter((group) => group.startsWith("monitoring."))).toEqual([]);
});

test("a ServiceMonitor selects the Service, a PodMonitor the pods, with the configured labels and interval", () => {
  const asked = { labels: { release: "prometheus" }, interval: "15s" };
  const all = objects({ serviceMonitor: asked, podMonitor: {} });
  const [service] = of("Service", all);
  expect(of("ServiceMonitor", all)).toEqual([
    {
      apiVersion: "monitoring.coreos.com/v1",
      kind: "ServiceMonitor",
      metadata: { name: "usher-metrics", namespace: "guests", labels: { release: "prometheus" } },
      spec: {
        selector: { matchLabels: at(service, "metadata", "labels") },
        endpoints: [{ port: "ops", path: "/metrics", interval: "15s" }],
      },
    },
  ]);
  expect(of("PodMonitor", all)).toEqual([
    {
      apiVersion: "monitoring.coreos.com/v1",
      kind: "PodMonitor",
      metadata: { name: "usher-metrics", namespace: "guests" },
      spec: {
        selector: { matchLabels: PODS },
        podMetricsEndpoints: [{ port: "ops", path: "/metrics" }],
      },
    },
  ]);
});
