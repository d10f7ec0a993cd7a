import { CONDITIONS, type Condition, type Health } from "./health.ts";
import { type MetricDescription, OPS_METRICS } from "./metrics/own-metrics.ts";

/**
 * A main thread without a heartbeat for this long is stuck, not busy: its longest piece of work, one page of a list,
 * takes tens of milliseconds. Half of the API server's longest timeout.
 */
export const HEARTBEAT_TIMEOUT_MS = 15_000;

export interface Page {
  readonly status: number;
  readonly body: string;
}

export const INDEX: Page = {
  status: 200,
  body: [
    "usher: health and metrics",
    "",
    "/livez            whether the main thread is responsive",
    "/readyz           whether this instance is ready; ?verbose lists the checks",
    "/metrics          metrics in Prometheus' text format",
    "",
  ].join("\n"),
};

export const UNKNOWN_PAGE: Page = { status: 404, body: "not found: / lists the pages\n" };
export const READ_ONLY: Page = { status: 405, body: "method not allowed: use GET or HEAD\n" };

export function livez(health: Health, limitMs: number): Page {
  const age = health.age();
  if (age <= limitMs) return { status: 200, body: "ok\n" };
  return {
    status: 503,
    body: `no heartbeat of the main thread for ${seconds(age)} s (limit ${seconds(limitMs)} s)\n`,
  };
}

const REASONS: Readonly<Record<Condition, string>> = {
  "source-read": "policies are not synced yet",
  "certificate-trusted": "the CA bundle of the webhook configurations does not trust the serving certificate",
  listening: "the webhook server is not listening yet",
  "not-draining": "this instance is shutting down",
};

export function readyz(health: Health, limitMs: number, verbose: boolean): Page {
  const checks: { readonly name: string; readonly problem: string | undefined }[] = CONDITIONS.map(
    (name) => ({
      name,
      problem: health.holds(name) ? undefined : REASONS[name],
    }),
  );
  const alive = livez(health, limitMs);
  checks.push({ name: "alive", problem: alive.status === 200 ? undefined : alive.body.trim() });
  const failing = checks.filter(({ problem }) => problem !== undefined);
  const status = failing.length === 0 ? 200 : 503;
  if (!verbose) {
    const lines = failing.map(({ name, problem }) => `${name}: ${problem}`);
    return { status, body: status === 200 ? "ok\n" : `not ready\n${lines.join("\n")}\n` };
  }
  const lines = checks.map(({ name, problem }) =>
    problem === undefined ? `[+] ${name}: ok` : `[-] ${name}: ${problem}`,
  );
  return { status, body: `${lines.join("\n")}\n${status === 200 ? "ready" : "not ready"}\n` };
}

/** Metrics that only this thread has, in Prometheus' text format. */
export function ownMetrics(health: Health, limitMs: number, snapshotAgeMs: number): string {
  const values: Readonly<Record<keyof typeof OPS_METRICS, number>> = {
    usher_ready: readyz(health, limitMs, false).status === 200 ? 1 : 0,
    usher_main_loop_heartbeat_age_seconds: health.age() / 1_000,
    usher_metrics_age_seconds: snapshotAgeMs / 1_000,
  };
  return metricsPage(OPS_METRICS, values);
}

/** Metrics without labels in Prometheus' text format. */
export function metricsPage<Name extends string>(
  metrics: Readonly<Record<Name, MetricDescription>>,
  values: Readonly<Record<Name, number>>,
): string {
  const names = Object.keys(metrics) as Name[];
  return names
    .map(
      (name) =>
        `# HELP ${name} ${metrics[name].help}\n# TYPE ${name} ${metrics[name].type}\n${name} ${values[name]}\n`,
    )
    .join("");
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(ms % 1_000 === 0 ? 0 : 1);
}
