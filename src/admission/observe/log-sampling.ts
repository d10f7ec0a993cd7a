import type { Log } from "../../core/log.ts";

/** An error in every request would fill the disk; one line a second shows that it persists, and how often. */
export const SAMPLE_MS = 1_000;

/**
 * The same log, but a warning or error with the same message is written at most once a second; the next line has the
 * number of omitted ones. Lower levels are always written.
 */
export function sampledLog(log: Log, clock = monotonic): Log {
  const { isLevelEnabled } = log;
  return {
    debug: (facts, message) => log.debug(facts, message),
    info: (facts, message) => log.info(facts, message),
    warn: sampled((facts, message) => log.warn(facts, message), clock),
    error: sampled((facts, message) => log.error(facts, message), clock),
    ...(isLevelEnabled === undefined
      ? {}
      : { isLevelEnabled: (level) => log.isLevelEnabled?.(level) ?? false }),
  };
}

/**
 * For messages about callers that did not prove to be an API server. Any client that reaches the port can send reviews,
 * so one line a second is written per message, at any level; each begins with a marker.
 */
export function unverifiedLog(log: Log, clock = monotonic): Log {
  const marked = (write: Log["error"]) =>
    sampled((facts, message) => write({ verified: false, ...facts }, `unverified caller: ${message}`), clock);
  const { isLevelEnabled } = log;
  return {
    debug: marked((facts, message) => log.debug(facts, message)),
    info: marked((facts, message) => log.info(facts, message)),
    warn: marked((facts, message) => log.warn(facts, message)),
    error: marked((facts, message) => log.error(facts, message)),
    ...(isLevelEnabled === undefined ? {} : { isLevelEnabled }),
  };
}

function sampled(write: Log["error"], clock: () => number): Log["error"] {
  const last = new Map<string, { readonly at: number; left: number }>();
  return (facts, message) => {
    const now = clock();
    const before = last.get(message);
    if (before !== undefined && now - before.at < SAMPLE_MS) {
      before.left++;
      return;
    }
    last.set(message, { at: now, left: 0 });
    const left = before?.left ?? 0;
    write(left === 0 ? facts : { ...facts, leftOut: left }, message);
  };
}

function monotonic(): number {
  return performance.now();
}
