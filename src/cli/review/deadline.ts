import type { Deadline } from "../../core/view/source.ts";

/** A cluster of files answers at once; a live one gets as long as an API server gives a webhook. */
const PATIENCE_MS = 10_000;

/** How long one object of a review may wait for facts. */
export function reviewDeadline(): Deadline {
  const until = performance.now() + PATIENCE_MS;
  return { remaining: () => until - performance.now(), signal: AbortSignal.timeout(PATIENCE_MS) };
}
