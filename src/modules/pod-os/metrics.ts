import type { Installation } from "../../core/installation/installation.ts";
import type { Metric, MetricLabel } from "../../core/module/metric.ts";
import { settingsOf } from "./settings.ts";

export const EVALUATIONS = "pod_security_evaluations_total";
export const EXEMPTIONS = "pod_security_exemptions_total";
export const PODS = "usher_pod_os_pods";
export const ERRORS = "pod_security_errors_total";

const REQUEST: readonly MetricLabel[] = [
  { name: "request_operation", values: ["create", "update"] },
  { name: "resource", values: ["pod", "namespace", "controller"] },
  { name: "subresource", values: ["", "ephemeralcontainers", "resize"] },
];

/** Every minor version of Kubernetes, and future ones. */
const MOST_VERSIONS = 128;

const OPERATIONS = ["create", "update"];
const series = (resource: string) =>
  OPERATIONS.map((operation) => ({ request_operation: operation, resource, subresource: "" }));

function replaces(installation: Installation): boolean {
  return settingsOf(installation).podSecurity.mode === "Replace";
}

/** Use of the OS; and upstream's metrics, with upstream's names and labels, if usher replaces upstream's plugin. */
export const METRICS: readonly Metric[] = [
  {
    name: PODS,
    type: "counter",
    help: "Created pods of a known OS, by OS and by source: explicit is spec.os.name.",
    labels: [
      { name: "os", values: ["linux", "windows"] },
      {
        name: "source",
        values: ["explicit", "nodeSelector", "nodeAffinity", "runtimeClass", "podLabel"],
      },
    ],
  },
  {
    name: EVALUATIONS,
    type: "counter",
    help: "Evaluations of pods and pod templates by Pod Security, without those that were ignored or exempt.",
    labels: [
      { name: "decision", values: ["allow", "deny"] },
      { name: "policy_level", values: ["privileged", "baseline", "restricted"] },
      { name: "policy_version", limit: MOST_VERSIONS },
      { name: "mode", values: ["enforce", "audit", "warn"] },
      ...REQUEST,
    ],
    initial: series("pod").map((labels) => ({
      decision: "allow",
      policy_level: "privileged",
      policy_version: "latest",
      mode: "enforce",
      ...labels,
    })),
    registered: replaces,
  },
  {
    name: EXEMPTIONS,
    type: "counter",
    help: "Requests that are exempt from Pod Security, without those that were ignored.",
    labels: REQUEST,
    initial: [...series("pod"), ...series("controller")],
    registered: replaces,
  },
  {
    name: ERRORS,
    type: "counter",
    help: "Errors that prevented a normal evaluation of Pod Security. After one that is not fatal, restricted:latest may have been applied.",
    labels: [{ name: "fatal", values: ["true", "false"] }, ...REQUEST],
    registered: replaces,
  },
];
