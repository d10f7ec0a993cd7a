import { METRICS } from "../../../core/evaluate/effects.ts";
import type { Module } from "../../../core/module/module.ts";
import {
  CONTROLLER_METRICS,
  counter,
  type ExportedMetric,
  type MetricDescription,
  OPS_METRICS,
  SERVER_METRICS,
  WATCHDOG_METRICS,
} from "./own-metrics.ts";

export interface MetricGroup {
  readonly title: string;
  readonly metrics: readonly ExportedMetric[];
}

/** Every metric that a replica with these modules or the watchdog exports, by its origin. */
export function exportedMetrics(modules: readonly Module[]): MetricGroup[] {
  const core = Object.entries(METRICS).map(([name, { help, labels }]) => ({
    name,
    ...counter(help, ...labels),
  }));
  return [
    { title: "The webhook server", metrics: named(SERVER_METRICS) },
    { title: "Decisions", metrics: core },
    { title: "The controller", metrics: named(CONTROLLER_METRICS) },
    { title: "Health", metrics: named(OPS_METRICS) },
    ...modules
      .map(({ name, metrics = [] }) => ({
        title: name,
        metrics: metrics.map((metric) => ({ ...metric, labels: metric.labels.map((label) => label.name) })),
      }))
      .filter(({ metrics }) => metrics.length > 0),
    { title: "The watchdog", metrics: named(WATCHDOG_METRICS) },
  ];
}

function named(metrics: Readonly<Record<string, MetricDescription>>): ExportedMetric[] {
  return Object.entries(metrics).map(([name, metric]) => ({ name, ...metric }));
}
