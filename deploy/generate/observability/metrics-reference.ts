import { exportedMetrics, type MetricGroup } from "../../../src/admission/observe/metrics/catalogue.ts";
import type { Module } from "../../../src/core/module/module.ts";

const OPENING = `# Metrics

Every replica serves its metrics at \`/metrics\` of its ops port (8080, the port \`ops\` of the Service \`usher-metrics\`), in Prometheus' text format; so does the watchdog, with metrics of its own. [Monitoring](monitoring.md) says how to scrape them, and has a dashboard and alerts.

Labels are bounded: never a user or an object's name, and where people choose the values (policies, groups) those beyond a limit share the value \`other\`. Counters start at zero with the process. What only the leader has is absent or zero on the other replicas, so add up over all of them.

This page is written by \`npm run deploy\` from the metrics themselves.
`;

/** The page that describes every metric. */
export function metricsReference(modules: readonly Module[]): string {
  return [OPENING, ...exportedMetrics(modules).map(section)].join("\n");
}

function section({ title, metrics }: MetricGroup): string {
  const rows = metrics.map(({ name, type, labels, help }) => {
    const list = labels.map((label) => `\`${label}\``).join(", ");
    return `| \`${name}\` | ${type} | ${list} | ${help.replaceAll("|", "\\|")} |`;
  });
  return [
    `## ${title}`,
    "",
    "| metric | type | labels | meaning |",
    "| --- | --- | --- | --- |",
    ...rows,
    "",
  ].join("\n");
}
