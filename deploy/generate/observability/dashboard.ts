import type { JsonObject } from "../../../src/core/json.ts";

/** A query of a panel, and how its series are named: `{{pod}}`. */
interface Query {
  readonly expr: string;
  readonly legend: string;
}

interface Panel {
  readonly title: string;
  readonly description: string;
  /** Of Grafana: `s`, `reqps`, `short`. */
  readonly unit: string;
  readonly queries: readonly Query[];
}

interface Row {
  readonly title: string;
  readonly panels: readonly Panel[];
}

const quantile = (q: number): Query => ({
  expr: `histogram_quantile(${q}, sum by (le, phase) (rate(usher_request_duration_seconds_bucket[$__rate_interval])))`,
  legend: `p${q * 100} {{phase}}`,
});

/** The panels that an administrator needs first come first. */
export const ROWS: readonly Row[] = [
  {
    title: "Requests",
    panels: [
      {
        title: "Requests",
        description: "Admission requests by phase and HTTP status; a denial has status 200.",
        unit: "reqps",
        queries: [
          {
            expr: "sum by (phase, code) (rate(usher_requests_total[$__rate_interval]))",
            legend: "{{phase}} {{code}}",
          },
        ],
      },
      {
        title: "Latency",
        description:
          "How long usher takes to answer. The shortest timeout of a webhook is 1 s, most are 2 s.",
        unit: "s",
        queries: [quantile(0.5), quantile(0.99)],
      },
      {
        title: "Decisions",
        description: "By hook and verdict.",
        unit: "reqps",
        queries: [
          {
            expr: "sum by (hook, verdict) (rate(usher_decisions_total[$__rate_interval]))",
            legend: "{{hook}} {{verdict}}",
          },
        ],
      },
      {
        title: "Failures",
        description: "Rules that could not be applied, and facts that could not be read. Usually none.",
        unit: "reqps",
        queries: [
          {
            expr: 'sum by (module, rule) (rate(usher_findings_total{outcome="failed"}[$__rate_interval]))',
            legend: "{{module}} {{rule}}",
          },
          {
            expr: "sum by (hook) (rate(usher_unknown_total[$__rate_interval]))",
            legend: "unknown {{hook}}",
          },
        ],
      },
    ],
  },
  {
    title: "Replicas",
    panels: [
      {
        title: "Ready, leading",
        description: "Replicas that are ready, and the one that leads.",
        unit: "short",
        queries: [
          { expr: "sum(usher_ready)", legend: "ready" },
          { expr: "sum(usher_leader)", legend: "leading" },
        ],
      },
      {
        title: "Delay of the event loop",
        description: "Every response is at least this late.",
        unit: "s",
        queries: [{ expr: 'usher_event_loop_delay_seconds{quantile="0.99"}', legend: "p99 {{pod}}" }],
      },
      {
        title: "CPU",
        description: "Cores in use.",
        unit: "short",
        queries: [
          {
            expr: "rate(process_cpu_seconds_total[$__rate_interval]) * on (instance, job) group_left (version) usher_build_info",
            legend: "{{pod}}",
          },
        ],
      },
      {
        title: "Memory",
        description: "Resident memory. The shipped limit is 512 MiB.",
        unit: "bytes",
        queries: [
          {
            expr: "process_resident_memory_bytes * on (instance, job) group_left (version) usher_build_info",
            legend: "{{pod}}",
          },
        ],
      },
      {
        title: "Age of the view",
        description: "Seconds since the API server last sent anything about a resource; usually below 25.",
        unit: "s",
        queries: [{ expr: "max by (resource) (usher_view_age_seconds)", legend: "{{resource}}" }],
      },
      {
        title: "Certificate",
        description: "Time until the serving certificate expires.",
        unit: "s",
        queries: [{ expr: "min(usher_certificate_expiry_timestamp_seconds) - time()", legend: "left" }],
      },
      {
        title: "Connections closed by a limit",
        description: "Usually none: API servers stay far below the limits.",
        unit: "short",
        queries: [
          {
            expr: "sum by (limit) (increase(usher_connections_closed_total[$__rate_interval]))",
            legend: "{{limit}}",
          },
        ],
      },
    ],
  },
  {
    title: "Policies",
    panels: [
      {
        title: "Policies",
        description: "By module.",
        unit: "short",
        queries: [{ expr: "max by (module) (usher_policies)", legend: "{{module}}" }],
      },
      {
        title: "Problems of policies",
        description: "The status of the policy names field and error.",
        unit: "short",
        queries: [
          { expr: "max by (module, severity) (usher_policy_problems)", legend: "{{module}} {{severity}}" },
        ],
      },
      {
        title: "Outcomes of policies",
        description: "Requests in which a cluster-wide policy had an outcome.",
        unit: "reqps",
        queries: [
          {
            expr: "sum by (module, policy, outcome) (rate(usher_policy_outcomes_total[$__rate_interval]))",
            legend: "{{module}} {{policy}} {{outcome}}",
          },
        ],
      },
      {
        title: "Workloads by state",
        description: "Stored workloads, as they compare with current policies.",
        unit: "short",
        queries: [{ expr: "max by (module, state) (usher_workloads)", legend: "{{module}} {{state}}" }],
      },
      {
        title: "Protected nodes",
        description: "Claims on nodes of a group, and pods that run there without being authorised.",
        unit: "short",
        queries: [
          {
            expr: "sum by (group, claim, verdict) (increase(usher_node_guard_claims_total[$__rate_interval]))",
            legend: "{{group}} {{claim}} {{verdict}}",
          },
          { expr: "max by (group) (usher_node_guard_running_violations)", legend: "running {{group}}" },
          { expr: "max by (group) (usher_node_guard_override_active)", legend: "overrides {{group}}" },
        ],
      },
    ],
  },
  {
    title: "Controller",
    panels: [
      {
        title: "Workqueue",
        description: "Items of the leader.",
        unit: "short",
        queries: [
          { expr: "sum by (state) (usher_plan_items)", legend: "{{state}}" },
          { expr: "sum by (module) (usher_plan_items_failing)", legend: "failing {{module}}" },
        ],
      },
      {
        title: "Writes",
        description: "By module, resource and result.",
        unit: "short",
        queries: [
          {
            expr: "sum by (module, resource, result) (increase(usher_plan_writes_total[$__rate_interval]))",
            legend: "{{module}} {{resource}} {{result}}",
          },
        ],
      },
      {
        title: "Events dropped",
        description: "Events that could not be written.",
        unit: "short",
        queries: [
          {
            expr: "sum by (pod) (increase(usher_events_dropped_total[$__rate_interval]))",
            legend: "{{pod}}",
          },
        ],
      },
    ],
  },
];

const COLUMNS = 3;
const WIDTH = 24 / COLUMNS;
const HEIGHT = 8;
const DATASOURCE = { type: "prometheus", uid: "$datasource" };

/** A dashboard that Grafana imports as it is. */
export function dashboard(): JsonObject {
  const panels: JsonObject[] = [];
  let y = 0;
  for (const row of ROWS) {
    const id = () => panels.length + 1;
    panels.push({
      id: id(),
      type: "row",
      title: row.title,
      collapsed: false,
      panels: [],
      gridPos: { x: 0, y, w: 24, h: 1 },
    });
    y += 1;
    for (const [i, panel] of row.panels.entries()) {
      const line = Math.floor(i / COLUMNS);
      panels.push(panelOf(panel, id(), (i % COLUMNS) * WIDTH, y + line * HEIGHT));
    }
    y += Math.ceil(row.panels.length / COLUMNS) * HEIGHT;
  }
  return {
    uid: "usher",
    title: "usher",
    tags: ["usher", "kubernetes", "admission"],
    schemaVersion: 39,
    version: 1,
    editable: true,
    refresh: "30s",
    time: { from: "now-1h", to: "now" },
    templating: {
      list: [{ name: "datasource", label: "Data source", type: "datasource", query: "prometheus" }],
    },
    annotations: { list: [] },
    panels,
  };
}

function panelOf({ title, description, unit, queries }: Panel, id: number, x: number, y: number): JsonObject {
  return {
    id,
    type: "timeseries",
    title,
    description,
    datasource: DATASOURCE,
    gridPos: { x, y, w: WIDTH, h: HEIGHT },
    fieldConfig: { defaults: { unit, min: 0 }, overrides: [] },
    options: { legend: { displayMode: "list", placement: "bottom" }, tooltip: { mode: "multi" } },
    targets: queries.map(({ expr, legend }, i) => ({
      refId: String.fromCharCode("A".charCodeAt(0) + i),
      datasource: DATASOURCE,
      expr,
      legendFormat: legend,
    })),
  };
}
