import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Counter } from "prom-client";
import type { Count } from "../../../core/decision/decision.ts";
import { type CappedLabel, METRICS } from "../../../core/evaluate/effects.ts";
import type { ListCut, ResourceAge } from "../../../core/evaluate/source.ts";
import type { Assembly } from "../../../core/module/assembly.ts";
import type { Phase } from "../../../core/module/hook.ts";
import type { ControllerStats } from "../../../core/module/reconciler.ts";
import { registerController } from "./controller-metrics.ts";
import { DurationHistogram } from "./duration-histogram.ts";
import { registerModuleMetrics } from "./module-metrics.ts";
import { SERVER_METRICS } from "./own-metrics.ts";
import { PendingCounts } from "./pending-counts.ts";

/**
 * From 50 µs, the cost of a request that matches no policy, to 10 s, the API server's default timeout, in steps of 2 to
 * 2.5: fine enough to see a p99 move, few enough to keep.
 */
const DURATION_BUCKETS = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** The resolution of the event loop delay. Each step is a wake-up, so it is no finer than needed. */
const LOOP_RESOLUTION_MS = 20;

/** The limits on a client: bytes in flight, connections, requests in flight on one connection. */
const CONNECTION_LIMITS = ["bytes", "connections", "requests"] as const;
export type ConnectionLimit = (typeof CONNECTION_LIMITS)[number];

export interface Metrics {
  /** One call to the webhook. The phase is absent if the URL has no route. */
  readonly observe: (phase: Phase | undefined, status: number, seconds: number) => void;
  /** A connection was closed because of a limit. */
  readonly connectionClosed: (limit: ConnectionLimit) => void;
  readonly count: (counts: readonly Count[]) => void;
  readonly text: () => Promise<string>;
  readonly stop: () => void;
}

export interface MetricsOptions {
  readonly assembly: () => Assembly;
  /** @default none: the view is always current */
  readonly viewAges?: (() => readonly ResourceAge[]) | undefined;
  /** Objects that lists have left out so far. @default none */
  readonly listCuts?: (() => readonly ListCut[]) | undefined;
  /** Expiry of the certificate in use, in seconds since 1970. */
  readonly certificateExpires: () => number;
  /** Whether API servers trust the certificate. @default they do */
  readonly certificateTrusted?: (() => boolean) | undefined;
  /** Absent if this process runs no controller. */
  readonly controllerStats?: (() => ControllerStats) | undefined;
  readonly version?: string | undefined;
}

/** The library is loaded here, not at the top: a command that does not serve needs no metrics. */
export async function createMetrics(options: MetricsOptions): Promise<Metrics> {
  // The default is the export of a CommonJS package, also once bundled; only Node itself finds named exports.
  const { default: prometheus } = await import("prom-client");
  const { Counter, Gauge, Registry } = prometheus;
  const registry = new Registry();
  const registers = [registry];
  const described = (name: keyof typeof SERVER_METRICS) => {
    const { help, labels } = SERVER_METRICS[name];
    return { name, help, labelNames: [...labels], registers };
  };

  const counters = new Map<string, Counter<string>>();
  for (const [name, { help, labels }] of Object.entries(METRICS)) {
    counters.set(name, new Counter({ name, help, labelNames: [...labels], registers }));
  }
  const requests = new Counter(described("usher_requests_total"));
  const durations = new DurationHistogram(
    "usher_request_duration_seconds",
    SERVER_METRICS.usher_request_duration_seconds.help,
    "phase",
    DURATION_BUCKETS,
  );
  const closed = new Counter(described("usher_connections_closed_total"));
  // Present from the start, so that the first one shows as an increase.
  for (const limit of CONNECTION_LIMITS) closed.inc({ limit }, 0);
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  new Gauge({
    ...described("usher_event_loop_delay_seconds"),
    collect() {
      // The histogram also counts the requested wait.
      const late = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - LOOP_RESOLUTION_MS / 1e3);
      this.set({ quantile: "0.5" }, late(loop.percentile(50)));
      this.set({ quantile: "0.99" }, late(loop.percentile(99)));
      this.set({ quantile: "1" }, late(loop.max));
      loop.reset();
    },
  });
  new Gauge({
    ...described("usher_policies"),
    collect() {
      const assembly = options.assembly();
      for (const { name } of assembly.modules)
        this.set({ module: name }, policyFigures(assembly, name).policies);
    },
  });
  new Gauge({
    ...described("usher_policy_problems"),
    collect() {
      const assembly = options.assembly();
      for (const { name } of assembly.modules)
        for (const severity of SEVERITIES)
          this.set({ module: name, severity }, policyFigures(assembly, name)[severity]);
    },
  });
  const { modules, installation } = options.assembly();
  const declared = modules
    .flatMap((module) => module.metrics ?? [])
    .filter(({ registered }) => registered?.(installation) ?? true);
  const figures = () => options.controllerStats?.().figures ?? [];
  const countDeclared = registerModuleMetrics(prometheus, registry, declared, figures);
  if (options.controllerStats !== undefined)
    registerController(prometheus, registry, options.controllerStats);
  new Gauge({
    ...described("usher_view_age_seconds"),
    collect() {
      this.reset();
      for (const { resource, ms } of options.viewAges?.() ?? []) this.set({ resource }, ms / 1_000);
    },
  });
  new Counter({
    ...described("usher_lists_cut_total"),
    collect() {
      this.reset();
      for (const { resource, what, count } of options.listCuts?.() ?? []) this.inc({ resource, what }, count);
    },
  });
  new Gauge({
    ...described("usher_certificate_expiry_timestamp_seconds"),
    collect() {
      this.set(options.certificateExpires());
    },
  });
  new Gauge({
    ...described("usher_certificate_trusted"),
    collect() {
      this.set(options.certificateTrusted?.() === false ? 0 : 1);
    },
  });
  new Gauge({
    ...described("process_resident_memory_bytes"),
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  new Gauge(described("process_start_time_seconds")).set(performance.timeOrigin / 1_000);
  new Counter({
    ...described("process_cpu_seconds_total"),
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  new Gauge(described("usher_build_info")).set({ version: options.version ?? "unknown" }, 1);

  // Buffered until the next scrape: a request has several increments, and the library validates and hashes the labels
  // of each.
  const calls = new PendingCounts(["phase", "code"]);
  const steps = new Map(
    Object.entries(METRICS).map(([name, { labels }]) => [name, new PendingCounts(labels)]),
  );
  const caps = new Map(
    Object.entries(METRICS).flatMap(([name, metric]) =>
      "capped" in metric ? [[name, new LabelCap(metric.capped)] as const] : [],
    ),
  );
  return {
    observe: (phase, status, seconds) => {
      const label = phase ?? "none";
      durations.observe(label, seconds);
      calls.add({ phase: label, code: String(status) });
    },
    connectionClosed: (limit) => closed.inc({ limit }),
    count: (counts) => {
      for (const count of counts) {
        const { metric, labels } = count;
        const own = steps.get(metric);
        if (own === undefined) countDeclared(count);
        else own.add(caps.get(metric)?.bounded(labels) ?? labels);
      }
    },
    text: async () => {
      calls.flush((labels, by) => requests.inc(labels, by));
      for (const [metric, gathered] of steps)
        gathered.flush((labels, by) => counters.get(metric)?.inc(labels, by));
      return `${await registry.metrics()}\n${durations.text()}`;
    },
    stop: () => loop.disable(),
  };
}

const SEVERITIES = ["error", "warning"] as const;

function policyFigures(
  assembly: Assembly,
  module: string,
): Readonly<Record<"policies" | (typeof SEVERITIES)[number], number>> {
  const figures = { policies: 0, error: 0, warning: 0 };
  for (const policy of assembly.policies(module)) {
    figures.policies++;
    for (const { severity } of policy.problems) figures[severity]++;
  }
  return figures;
}

/** Caps label cardinality: the first N values keep their name, later ones become `other`. */
export class LabelCap {
  readonly #label: string;
  readonly #most: number;
  readonly #known = new Set<string>();

  constructor({ label, most }: CappedLabel) {
    this.#label = label;
    this.#most = most;
  }

  bounded(labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
    const value = labels[this.#label] ?? "";
    if (this.#known.has(value)) return labels;
    if (this.#known.size >= this.#most) return { ...labels, [this.#label]: "other" };
    this.#known.add(value);
    return labels;
  }
}
