import type { Log } from "../../core/log.ts";

/** An error of every request would fill the disk; once a second shows that it goes on, and how often. */
export const SAMPLE_MS = 1_000;

/**
 * The same log, but a warning or error with the same message is written at most once a second; the next line has the number of
 * those that were left out. Below a warning everything is written.
 */
export function sampledLog(log: Log, clock: () => number = () => performance.now()): Log {
  const last = new Map<string, { readonly at: number; left: number }>();
  const sampled = (write: Log["error"]) => (facts: object, message: string) => {
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
  const { isLevelEnabled } = log;
  return {
    debug: (facts, message) => log.debug(facts, message),
    info: (facts, message) => log.info(facts, message),
    warn: sampled((facts, message) => log.warn(facts, message)),
    error: sampled((facts, message) => log.error(facts, message)),
    ...(isLevelEnabled === undefined
      ? {}
      : { isLevelEnabled: (level) => log.isLevelEnabled?.(level) ?? false }),
  };
}
