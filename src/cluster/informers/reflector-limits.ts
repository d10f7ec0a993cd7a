import { BACKOFF, type BackoffLimits } from "../client/backoff.ts";

/** The numbers of list and watch, together so that a test can have others. */
export interface ReflectorLimits {
  readonly backoff: BackoffLimits;
  readonly pageLimit: number;
  readonly smallPageLimit: number;
  readonly watchSeconds: readonly [number, number];
  readonly idleTimeoutMs: number;
  readonly shortWatchMs: number;
  readonly notServedMs: number;
  readonly absences: number;
  readonly streamFailures: number;
  readonly watchRefusals: number;
}

export const REFLECTOR_LIMITS: ReflectorLimits = {
  backoff: BACKOFF,
  // Measured: parsing a page of 100 pods blocks the event loop for 14 ms, one of 500 for more than 50.
  pageLimit: 100,
  // Where even such a page is too large to be held: ten objects of the largest size that there is are 30 MiB.
  smallPageLimit: 10,
  // Kubernetes' own clients take minutes. But a connection that has died without a word is only known by what does not come, and all
  // that a quiet watch surely shows is its end: so the ends are near, with a bookmark shortly before each. A small request for each
  // resource in so many seconds is the price. Spread, so that the watches of many do not all end together. A streaming list that
  // takes longer is made in pages instead.
  watchSeconds: [17, 21],
  // Longer than any watch, with some seconds of delay; and the view is right again within half a minute.
  idleTimeoutMs: 25_000,
  // Kubernetes' own clients too take a watch that ended within a second for a failed one.
  shortWatchMs: 1_000,
  // Someone who installs a CRD should not wait for us for long, and a small question every ten seconds costs nothing.
  notServedMs: 10_000,
  // Some 30 s: API servers of one cluster learn of a new CRD within seconds of each other.
  absences: 3,
  // A server may accept a streaming list and yet never end it (an etcd without progress notifications): then pages.
  streamFailures: 2,
  // Some 25 s of refusals with the back-off above: longer than an API server needs to catch up after a restart.
  watchRefusals: 5,
};
