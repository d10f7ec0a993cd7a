import { CONDITIONS, type Condition, type Health } from "./health.ts";

/** How often the main thread says that it lives. */
export const BEAT_EVERY_MS = 500;

/**
 * A main thread that was silent for this long is stuck, not busy: the longest honest piece of work, the reading of one page
 * of a list, takes tens of milliseconds. Half of the API server's longest call, so that nobody waits for a restart twice.
 */
export const SILENCE_LIMIT_MS = 15_000;

export interface Page {
  readonly status: number;
  readonly body: string;
}

export const INDEX: Page = {
  status: 200,
  body: [
    "usher: health and metrics",
    "",
    "/livez            whether the main thread is alive",
    "/readyz           whether this instance should be given work; ?verbose lists the checks",
    "/metrics          for Prometheus",
    "",
  ].join("\n"),
};

export const UNKNOWN_PAGE: Page = { status: 404, body: "nothing here; see / for what there is\n" };
export const READ_ONLY: Page = { status: 405, body: "only GET and HEAD are answered here\n" };

export function livez(pulse: Health, limitMs: number): Page {
  const age = pulse.age();
  if (age <= limitMs) return { status: 200, body: "ok\n" };
  return {
    status: 503,
    body: `the main thread has been silent for ${seconds(age)} s; more than ${seconds(limitMs)} s means that it is stuck\n`,
  };
}

const MISSING: Readonly<Record<Condition, string>> = {
  "source-read": "policies and what they need are still being read",
  listening: "the webhook does not listen yet",
  "not-draining": "this instance is shutting down",
};

export function readyz(pulse: Health, limitMs: number, verbose: boolean): Page {
  const checks: { readonly name: string; readonly problem: string | undefined }[] = CONDITIONS.map(
    (name) => ({
      name,
      problem: pulse.holds(name) ? undefined : MISSING[name],
    }),
  );
  const alive = livez(pulse, limitMs);
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

/** What only the other thread can tell of the main one, in Prometheus' words. */
export function ownMetrics(pulse: Health, snapshotAgeMs: number): string {
  return [
    "# HELP usher_main_loop_heartbeat_age_seconds Time since the main thread last said that it lives. It does so twice a second.",
    "# TYPE usher_main_loop_heartbeat_age_seconds gauge",
    `usher_main_loop_heartbeat_age_seconds ${pulse.age() / 1_000}`,
    "# HELP usher_metrics_age_seconds Age of all other figures on this page: 0, or more where the main thread was too busy to give new ones.",
    "# TYPE usher_metrics_age_seconds gauge",
    `usher_metrics_age_seconds ${snapshotAgeMs / 1_000}`,
    "",
  ].join("\n");
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(ms % 1_000 === 0 ? 0 : 1);
}
