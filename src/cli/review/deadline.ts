import type { Deadline } from "../../core/evaluate/source.ts";

/** The default timeout of admission webhooks. */
const TIMEOUT_MS = 10_000;

/** The time limit of one fetch of facts. */
export function reviewDeadline(): Deadline {
  const until = performance.now() + TIMEOUT_MS;
  return { remaining: () => until - performance.now(), signal: AbortSignal.timeout(TIMEOUT_MS) };
}
