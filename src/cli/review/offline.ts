import type { Deadline } from "../../core/source.ts";

/** Offline nobody waits: what the source can say, it says at once. */
export const OFFLINE: Deadline = {
  remaining: () => Number.POSITIVE_INFINITY,
  signal: new AbortController().signal,
};
