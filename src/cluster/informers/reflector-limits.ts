import { BACKOFF, type BackoffLimits } from "../client/retry.ts";

/** Limits of list and watch, in one value so that tests can replace them. */
export interface ReflectorLimits {
  readonly backoff: BackoffLimits;
  readonly pageLimit: number;
  readonly watchSeconds: readonly [number, number];
  readonly idleTimeoutMs: number;
  readonly shortWatchMs: number;
  readonly notServedMs: number;
  readonly absentDiscoveries: number;
  readonly streamFailures: number;
  readonly watchRejections: number;
}

export const REFLECTOR_LIMITS: ReflectorLimits = {
  backoff: BACKOFF,
  // Measured: parsing a page of 100 pods blocks the event loop for 14 ms, one of 500 for more than 50.
  pageLimit: 100,
  // client-go uses 5 to 10 minutes. A half-open connection shows only by missing data, and the only data that an idle
  // watch surely sends is its end, with a bookmark shortly before: short watches detect it early, for one small request
  // per resource and interval. Random, so that the watches of many replicas do not end together. A streaming list that
  // takes longer is paged instead.
  watchSeconds: [17, 21],
  // Longer than any watch plus some delay; the view recovers within half a minute.
  idleTimeoutMs: 25_000,
  // As client-go: a watch that ends within a second counts as failed.
  shortWatchMs: 1_000,
  // A new CRD is found within this time, at the cost of one small request.
  notServedMs: 10_000,
  // About 30 s: the API servers of a cluster learn of a new CRD within seconds of each other.
  absentDiscoveries: 3,
  // A server may accept a streaming list and never complete it (etcd without progress notifications): then it is paged.
  streamFailures: 2,
  // About 25 s with the back-off above: longer than an API server needs to catch up after a restart.
  watchRejections: 5,
};
