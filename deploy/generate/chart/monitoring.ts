import { DEFAULT_INSTALLATION } from "../../../src/core/installation/installation.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { monitors } from "../../../src/core/registration/monitoring/monitors.ts";
import { ruleGroups } from "../observability/alerts.ts";
import { prometheusRule, RUNBOOK } from "../observability/files.ts";
import { emit } from "../template/emit.ts";
import { asNode, block, type Node, type NodeMap, scalar, When } from "../template/node.ts";
import { NAMESPACE } from "../template/standing-for.ts";
import type { Value } from "./values.ts";

const TEXT = { type: "string" };
const TEXTS = { type: "object", additionalProperties: TEXT };
const INTERVAL = { ...TEXT, pattern: "^([0-9]+(ms|s|m|h))*$" };

const MONITORS: readonly { readonly name: "serviceMonitor" | "podMonitor"; readonly list: string }[] = [
  { name: "serviceMonitor", list: "endpoints" },
  { name: "podMonitor", list: "podMetricsEndpoints" },
];

/** Objects of the Prometheus operator, each only if a value enables it. */
export function monitoringTemplate(): string {
  const installation = { ...DEFAULT_INSTALLATION, namespace: NAMESPACE };
  const scraping = MONITORS.map(({ name, list }) => {
    const [monitor = {}] = monitors(installation, { [name]: {} });
    const spec = monitor["spec"] as NodeMap;
    const interval = `.Values.monitoring.${name}.interval`;
    const [endpoint] = spec[list] as readonly NodeMap[];
    const timed = { ...endpoint, interval: new When(interval, scalar(`${interval} | toJson`)) };
    return when(name, { ...(monitor as NodeMap), spec: { ...spec, [list]: [timed] } });
  });
  const rule = { ...(prometheusRule(RUNBOOK) as NodeMap), spec: { groups: asNode(ruleGroups("") as never) } };
  return [...scraping, when("prometheusRule", left(rule) as NodeMap)].join("");
}

function when(name: string, object: NodeMap): string {
  const { name: called } = object["metadata"] as JsonObject;
  const labels = block(`include "usher.labels" (list . (deepCopy .Values.monitoring.${name}.labels))`);
  const metadata = { name: String(called), namespace: NAMESPACE, labels };
  return `{{- if .Values.monitoring.${name}.enabled }}\n---\n${emit({ ...object, metadata })}{{- end }}\n`;
}

/** Texts with braces are Prometheus' templates, not Helm's; the address of the runbook is a value. */
function left(node: Node): Node {
  if (typeof node === "string") {
    if (/^#\w+$/.test(node))
      return scalar(`printf "%s${node}" .Values.monitoring.prometheusRule.runbookUrl | toJson`);
    return node.includes("{{") ? scalar(`\`${node}\` | toJson`) : node;
  }
  if (Array.isArray(node)) return node.map(left);
  if (typeof node !== "object" || node === null) return node;
  return Object.fromEntries(Object.entries(node as NodeMap).map(([key, value]) => [key, left(value)]));
}

/** Off by default: a cluster may not have the CRDs of the Prometheus operator. */
export function monitoringValues(): Value[] {
  const value = (
    name: string,
    about: string,
    more: Readonly<Record<string, [string, JsonObject]>>,
  ): Value => ({
    path: `monitoring.${name}`,
    otherwise: {
      enabled: false,
      labels: {},
      ...Object.fromEntries(Object.entries(more).map(([field, [otherwise]]) => [field, otherwise])),
    },
    schema: {
      type: "object",
      additionalProperties: false,
      properties: {
        enabled: { type: "boolean" },
        labels: TEXTS,
        ...Object.fromEntries(Object.entries(more).map(([field, [, schema]]) => [field, schema])),
      },
    },
    about: `${about} Needs the CRDs of the Prometheus operator; with \`labels\` by which a Prometheus selects it.`,
  });
  const interval = { interval: ["", INTERVAL] as [string, JsonObject] };
  return [
    value("serviceMonitor", "A ServiceMonitor for the metrics; `interval` such as `30s`.", interval),
    value("podMonitor", "A PodMonitor, in place of the ServiceMonitor.", interval),
    value("prometheusRule", "A PrometheusRule with the alerts; `runbookUrl`: where their runbook is.", {
      runbookUrl: [RUNBOOK, TEXT],
    }),
  ];
}
