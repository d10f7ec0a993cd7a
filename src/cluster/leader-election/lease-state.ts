import { at, isObject, type Json, type JsonObject, stringAt } from "../../core/json.ts";

/**
 * Leader election by a Lease, from the view of one candidate. Pure: callers pass records and the time of the
 * candidate's own clock. Times in the Lease are from other clocks and for display only; the candidate measures for how
 * long a record was observed unchanged, as in client-go.
 */

export interface LeaseTimes {
  /** After this time without a renewal another candidate may acquire the lease. */
  readonly durationMs: number;
  /** How often the holder renews. */
  readonly renewMs: number;
  /**
   * How long the holder leads after its last successful renewal was sent. A Lease does not fence: the rest of the
   * duration is for writes in flight.
   */
  readonly renewDeadlineMs: number;
  /** How often a candidate reads the lease, and a holder retries a failed renewal. */
  readonly retryMs: number;
}

export const LEASE_TIMES: LeaseTimes = {
  durationMs: 15_000,
  renewMs: 5_000,
  renewDeadlineMs: 10_000,
  retryMs: 2_000,
};

/**
 * The timeout of a request. A renewal that hangs is abandoned early enough for another attempt, which may take as long,
 * before the renew deadline. If the abandoned one arrives later, its version conflicts or it renews the own lease: both
 * are harmless.
 */
export function leaseTimeoutMs({ renewDeadlineMs, renewMs }: LeaseTimes): number {
  return (renewDeadlineMs - renewMs) / 2;
}

/** A Lease as it was read. */
export interface LeaseRecord {
  readonly resourceVersion: string;
  /** Empty: released. */
  readonly holder: string;
  readonly durationMs: number;
  readonly transitions: number;
}

export interface LeaseState {
  readonly identity: string;
  readonly times: LeaseTimes;
  /** The last record, and since when it is unchanged. `undefined`: not read yet. */
  readonly observed: { readonly record: LeaseRecord | undefined; readonly since: number } | undefined;
  /** When the last successful renewal was sent; `undefined`: not the holder. */
  readonly heldSince: number | undefined;
  /**
   * Whether another candidate may lead without a Lease: the last Lease that was read had another holder. If the Lease is
   * deleted, that holder still leads, and creates it again when it renews, or is gone after the lease's duration.
   */
  readonly hasRival: boolean;
}

export function newLeaseState(identity: string, times: LeaseTimes = LEASE_TIMES): LeaseState {
  return { identity, times, observed: undefined, heldSince: undefined, hasRival: false };
}

/** After a read; `undefined`: the Lease does not exist. */
export function leaseRead(state: LeaseState, record: LeaseRecord | undefined, now: number): LeaseState {
  const same =
    state.observed !== undefined && state.observed.record?.resourceVersion === record?.resourceVersion;
  const isOther = record?.holder !== state.identity;
  const since = same ? (state.observed?.since ?? now) : now;
  const isGone = record === undefined && now - since >= state.times.durationMs;
  // Another candidate may have acquired the lease of a former leader before it was deleted.
  const mayHaveRival =
    !isGone && (state.hasRival || (state.heldSince !== undefined && !isLeader(state, now)));
  return {
    ...state,
    observed: { record, since },
    heldSince: isOther ? undefined : state.heldSince,
    hasRival: record === undefined ? mayHaveRival : isOther,
  };
}

/** After a successful write that was sent at `sent`. */
export function leaseWritten(state: LeaseState, record: LeaseRecord, sent: number): LeaseState {
  return { ...state, observed: { record, since: sent }, heldSince: sent, hasRival: false };
}

/** After a conflict, or a write with unknown result: the Lease must be read again first. */
export function leaseUncertain(state: LeaseState): LeaseState {
  return { ...state, observed: undefined };
}

/** Whether this candidate is the leader now. */
export function isLeader(state: LeaseState, now: number): boolean {
  return state.heldSince !== undefined && now - state.heldSince < state.times.renewDeadlineMs;
}

export type LeaseStep =
  | { readonly step: "read" }
  | {
      readonly step: "write";
      /** `undefined`: the Lease must not exist yet. */
      readonly resourceVersion: string | undefined;
      readonly transitions: number;
      /** False for a renewal. */
      readonly acquires: boolean;
    };

/** The next step. */
export function leaseStep(state: LeaseState, now: number): LeaseStep {
  const { observed, identity, hasRival } = state;
  if (observed === undefined) return { step: "read" };
  const { record, since } = observed;
  if (record === undefined && hasRival) return { step: "read" };
  if (record === undefined)
    return { step: "write", resourceVersion: undefined, transitions: 0, acquires: true };
  const { resourceVersion, transitions, holder } = record;
  if (holder === identity) {
    // Held by a previous process of the same identity: acquiring it is a renewal.
    return { step: "write", resourceVersion, transitions, acquires: state.heldSince === undefined };
  }
  if (holder === "" || now - since >= record.durationMs) {
    return { step: "write", resourceVersion, transitions: transitions + 1, acquires: true };
  }
  return { step: "read" };
}

/** The delay before the next step, after a successful one. */
export function leaseWait(state: LeaseState, now: number): number {
  const { observed, times, heldSince } = state;
  if (heldSince !== undefined) return Math.max(0, heldSince + times.renewMs - now);
  if (observed === undefined || observed.record?.holder === "") return times.retryMs;
  // Not later than the lease's expiry.
  const { durationMs } = observed.record ?? times;
  return Math.min(times.retryMs, Math.max(1, observed.since + durationMs - now));
}

/** Metadata of other clients on a Lease; and its uid, without which a PUT creates a Lease that was deleted. */
export function keptMetadata(body: Json | undefined): JsonObject {
  const metadata = at(body, "metadata");
  const { labels, annotations, ownerReferences, uid } = isObject(metadata) ? metadata : {};
  return { labels, annotations, ownerReferences, uid };
}

/** The fields of a Lease; `undefined` if the body is not a Lease. */
export function recordOf(body: Json | undefined): LeaseRecord | undefined {
  const resourceVersion = stringAt(body, "metadata", "resourceVersion");
  if (resourceVersion === undefined || !isObject(body)) return undefined;
  const seconds = at(body, "spec", "leaseDurationSeconds");
  const transitions = at(body, "spec", "leaseTransitions");
  return {
    resourceVersion,
    holder: stringAt(body, "spec", "holderIdentity") ?? "",
    durationMs: typeof seconds === "number" ? seconds * 1_000 : LEASE_TIMES.durationMs,
    transitions: typeof transitions === "number" ? transitions : 0,
  };
}
