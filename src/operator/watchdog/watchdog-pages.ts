import { WATCHDOG_METRICS } from "../../admission/observe/metrics/own-metrics.ts";
import { INDEX, metricsPage, type Page, UNKNOWN_PAGE } from "../../admission/observe/ops-pages.ts";
import { LONGEST_GAP_MS } from "./absence.ts";
import type { WatchdogState } from "./watchdog.ts";

/** Its longest step: a look and both configurations, each read and written with an Event, while every request takes its ten seconds. */
const LONGEST_STEP_MS = 120_000;

/** Health and metrics of the watchdog. It is ready once it has seen the replicas, and as long as it sees them. */
export function watchdogPage(path: string, state: WatchdogState): Page {
  const { unreadyMs, opened, lookAgeMs, stepAgeMs } = state;
  switch (path) {
    case "/livez":
    case "/healthz":
      return check(stepAgeMs <= LONGEST_STEP_MS, "it has done nothing", stepAgeMs);
    case "/readyz":
      return check(lookAgeMs <= LONGEST_GAP_MS, "it has not seen the replicas", lookAgeMs);
    case "/metrics":
      return {
        status: 200,
        body: metricsPage(WATCHDOG_METRICS, {
          usher_watchdog_unready_seconds: unreadyMs / 1_000,
          usher_watchdog_opened: opened,
          usher_watchdog_look_age_seconds: lookAgeMs / 1_000,
        }).replaceAll("Infinity", "+Inf"),
      };
    case "/":
      return INDEX;
    default:
      return UNKNOWN_PAGE;
  }
}

function check(holds: boolean, problem: string, ms: number): Page {
  if (holds) return { status: 200, body: "ok\n" };
  const since = Number.isFinite(ms) ? ` for ${Math.floor(ms / 1_000)} s` : " yet";
  return { status: 503, body: `${problem}${since}; its log says why\n` };
}
