import type { Log } from "../../core/log.ts";

/** A fault that every request meets would fill the disk; once a second shows that it goes on, and how often. */
export const SAME_FAULT_EVERY_MS = 1_000;

/**
 * The same log, but a fault of the same sentence is written at most once a second; the next line says how many were left out.
 * Below a warning everything is written: what is too much there is chosen by the level.
 */
export function sampledLog(log: Log, clock: () => number = () => performance.now()): Log {
  const last = new Map<string, { readonly at: number; left: number }>();
  const sampled = (write: Log["error"]) => (facts: object, message: string) => {
    const now = clock();
    const before = last.get(message);
    if (before !== undefined && now - before.at < SAME_FAULT_EVERY_MS) {
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
