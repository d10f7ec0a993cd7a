/** A metric as it is exported. */
export interface ExportedMetric {
  readonly name: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** The names of its labels. */
  readonly labels: readonly string[];
}

export type MetricDescription = Omit<ExportedMetric, "name">;

const gauge = (help: string, ...labels: string[]): MetricDescription => ({ type: "gauge", help, labels });
export const counter = (help: string, ...labels: string[]): MetricDescription => ({
  type: "counter",
  help,
  labels,
});

/** Metrics of the main thread of every process, beside the counts of core. */
export const SERVER_METRICS = {
  usher_requests_total: counter(
    "Admission requests by phase and HTTP status. A denial has status 200; 499: the client disconnected before the response.",
    "phase",
    "code",
  ),
  usher_request_duration_seconds: {
    type: "histogram",
    help: "Latency of admission requests in seconds, from the headers of the request until the response was handed to the network.",
    labels: ["phase"],
  },
  usher_connections_closed_total: counter(
    "Connections that usher closed because a limit was reached: bytes in flight, connections, requests in flight on one connection.",
    "limit",
  ),
  usher_event_loop_delay_seconds: gauge(
    "Delay of the main thread's event loop since the last scrape, in seconds. Every response is at least this late.",
    "quantile",
  ),
  usher_policies: gauge("Policies that usher knows, by module.", "module"),
  usher_policy_problems: gauge(
    "Problems of policies, by module and severity (error, warning). A policy with an error has no effect: see the policy's status, or run usher review on it.",
    "module",
    "severity",
  ),
  usher_view_age_seconds: gauge(
    "Seconds since the API server last sent anything about a resource that usher watches; usually below 25. Decisions are based on the last known state.",
    "resource",
  ),
  usher_lists_cut_total: counter(
    "Lists that did not fit into memory, by resource and by what was cut: object, if one object was left out because it is too large to be read; list, if a list ended early, as if by its limit.",
    "resource",
    "what",
  ),
  usher_certificate_expiry_timestamp_seconds: gauge(
    "Expiry of the serving certificate of the webhook, in seconds since 1970.",
  ),
  usher_certificate_trusted: gauge(
    "Whether API servers trust the serving certificate: 0 if a CA bundle of usher's webhook configurations does not, and calls fail; else 1.",
  ),
  usher_build_info: gauge("Always 1, with the version of usher as a label.", "version"),
  process_resident_memory_bytes: gauge("Resident memory size in bytes."),
  process_start_time_seconds: gauge("Start time of the process, in seconds since 1970."),
  process_cpu_seconds_total: counter("Total user and system CPU time in seconds."),
} as const satisfies Readonly<Record<string, MetricDescription>>;

/** For processes that take part in leader election. */
export const CONTROLLER_METRICS = {
  usher_leader: gauge("1 if this replica leads, else 0. Exactly one replica should lead."),
  usher_plan_items: gauge(
    "Items in the workqueue of the controller: due, running, or delayed (later). Only the leader reports any.",
    "state",
  ),
  usher_plan_items_failing: gauge(
    "Items of the workqueue whose last write failed, by module; they are retried. Only the leader reports any.",
    "module",
  ),
  usher_plan_writes_total: counter(
    "Writes of reconcilers, by module, resource and result: done, failed, or conflict, which is reconciled again.",
    "module",
    "resource",
    "result",
  ),
  usher_object_drift: gauge(
    "Fields of an object that differ from what usher needs and does not write itself: webhooks with manageWebhooks: false, 1 if the ConfigMap of its configuration is missing, and 1 for an object of a module that the API server refuses. Only the leader reports any.",
    "object",
  ),
  usher_events_dropped_total: counter(
    "Events that could not be written, after retries or because of a limit.",
  ),
} as const satisfies Readonly<Record<string, MetricDescription>>;

/** Metrics of the thread of the ops server, which responds while the main thread is stuck. */
export const OPS_METRICS = {
  usher_ready: gauge("1 if this replica is ready, as /readyz reports, else 0."),
  usher_main_loop_heartbeat_age_seconds: gauge(
    "Seconds since the last heartbeat of the main thread, which has two a second.",
  ),
  usher_metrics_age_seconds: gauge(
    "Age of all other metrics on this page: 0, or more if the main thread was too busy to collect them.",
  ),
} as const satisfies Readonly<Record<string, MetricDescription>>;

/** Metrics of the watchdog, which is not a replica. */
export const WATCHDOG_METRICS = {
  usher_watchdog_unready_seconds: gauge(
    "Seconds for which no replica was ready, as far as the watchdog has observed it; 0 while one is.",
  ),
  usher_watchdog_opened: gauge(
    "Webhook configurations with entries that are open because no replica was ready: 0, 1 or 2.",
  ),
  usher_watchdog_look_age_seconds: gauge(
    "Seconds since the watchdog last saw whether replicas are ready. Time that it does not see does not count.",
  ),
} as const satisfies Readonly<Record<string, MetricDescription>>;
