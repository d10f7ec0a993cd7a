import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Counter } from "prom-client";
import type { Assembly } from "../../core/evaluate/assembly.ts";
import { METRICS } from "../../core/evaluate/effects.ts";
import type { Phase } from "../../core/module/hook.ts";
import type { Count } from "../../core/module/metric.ts";
import type { ControllerStats } from "../../core/module/reconciler.ts";
import { LabelCap } from "./capped-label.ts";
import { registerController } from "./controller-metrics.ts";
import { DurationHistogram } from "./duration-histogram.ts";
import { registerModuleMetrics } from "./module-metrics.ts";
import { PendingCounts } from "./pending-counts.ts";

/**
 * From 50 µs, the cost of a request that no policy wants, to 10 s, the API server's default timeout, in steps of 2 to 2.5: fine enough
 * to see a p99 move, few enough to keep.
 */
const DURATION_BUCKETS = [
  0.00005, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10,
];

/** How finely the delay of the event loop is measured. Each step is a wake-up, so not finer than what we act on. */
const LOOP_RESOLUTION_MS = 20;

export interface Metrics {
  /** One call to the webhook. No phase where the address led nowhere. */
  readonly observe: (phase: Phase | undefined, status: number, seconds: number) => void;
  readonly count: (counts: readonly Count[]) => void;
  readonly text: () => Promise<string>;
  readonly stop: () => void;
}

export interface MetricsOptions {
  readonly assembly: () => Assembly;
  /** When the certificate in use runs out, in seconds since 1970. */
  readonly certificateExpires: () => number;
  /** Absent where this process runs no controller. */
  readonly controllerStats?: (() => ControllerStats) | undefined;
  readonly version?: string | undefined;
}

/** The library is loaded here, not at the top: a command that serves nothing needs no metrics. */
export async function createMetrics(options: MetricsOptions): Promise<Metrics> {
  // The default is what a CommonJS package exports, also once it is bundled; named exports are found only by Node itself.
  const { default: prometheus } = await import("prom-client");
  const { Counter, Gauge, Registry } = prometheus;
  const registry = new Registry();
  const registers = [registry];

  const counters = new Map<string, Counter<string>>();
  for (const [name, { help, labels }] of Object.entries(METRICS)) {
    counters.set(name, new Counter({ name, help, labelNames: [...labels], registers }));
  }
  const requests = new Counter({
    name: "usher_requests_total",
    help: "Admission requests by phase and HTTP status. A denial has status 200; 499: the client disconnected before the response.",
    labelNames: ["phase", "code"],
    registers,
  });
  const durations = new DurationHistogram(
    "usher_request_duration_seconds",
    "Latency of admission requests in seconds, from the headers of the request until the response was handed to the network.",
    "phase",
    DURATION_BUCKETS,
  );
  const loop = monitorEventLoopDelay({ resolution: LOOP_RESOLUTION_MS });
  loop.enable();
  new Gauge({
    name: "usher_event_loop_delay_seconds",
    help: "Delay of the main thread's event loop since the last scrape, in seconds. Every response is at least this late.",
    labelNames: ["quantile"],
    registers,
    collect() {
      // The histogram counts the wait that was asked for as well.
      const late = (nanoseconds: number) => Math.max(0, nanoseconds / 1e9 - LOOP_RESOLUTION_MS / 1e3);
      this.set({ quantile: "0.5" }, late(loop.percentile(50)));
      this.set({ quantile: "0.99" }, late(loop.percentile(99)));
      this.set({ quantile: "1" }, late(loop.max));
      loop.reset();
    },
  });
  new Gauge({
    name: "usher_policies",
    help: "Policies that usher knows, by module.",
    labelNames: ["module"],
    registers,
    collect() {
      const assembly = options.assembly();
      for (const { name } of assembly.modules)
        this.set({ module: name }, policyFigures(assembly, name).policies);
    },
  });
  new Gauge({
    name: "usher_policy_problems",
    help: "Things wrong with policies, by module. A policy with a problem may be inert: see its status, or run usher review on it.",
    labelNames: ["module"],
    registers,
    collect() {
      const assembly = options.assembly();
      for (const { name } of assembly.modules)
        this.set({ module: name }, policyFigures(assembly, name).problems);
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
    name: "usher_certificate_expiry_timestamp_seconds",
    help: "Expiry of the serving certificate of the webhook, in seconds since 1970.",
    registers,
    collect() {
      this.set(options.certificateExpires());
    },
  });
  new Gauge({
    name: "process_resident_memory_bytes",
    help: "Resident memory size in bytes.",
    registers,
    collect() {
      this.set(process.memoryUsage.rss());
    },
  });
  new Gauge({
    name: "process_start_time_seconds",
    help: "Start time of the process, in seconds since 1970.",
    registers,
  }).set(performance.timeOrigin / 1_000);
  new Counter({
    name: "process_cpu_seconds_total",
    help: "Total user and system CPU time in seconds.",
    registers,
    collect() {
      const { user, system } = process.cpuUsage();
      this.reset();
      this.inc((user + system) / 1e6);
    },
  });
  new Gauge({
    name: "usher_build_info",
    help: "Always 1, with the version of usher as a label.",
    labelNames: ["version"],
    registers,
  }).set({ version: options.version ?? "unknown" }, 1);

  // Counted here until the next scrape: a request has several increments, and the library checks and hashes the labels of each.
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

function policyFigures(assembly: Assembly, module: string): { policies: number; problems: number } {
  const figures = { policies: 0, problems: 0 };
  for (const policy of assembly.policies(module)) {
    figures.policies++;
    figures.problems += policy.problems.length;
  }
  return figures;
}
