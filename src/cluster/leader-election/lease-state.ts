/**
 * Who leads, as one of the candidates sees it. Pure: it is told what was read and when, on its own clock. Times in a Lease are other
 * people's clocks and are written for people only; what counts is how long a record has stood unchanged before our own eyes.
 */

export interface LeaseTimes {
  /** After so long without a sign of life the next one may take over. */
  readonly durationMs: number;
  /** How often the holder gives a sign of life. */
  readonly renewMs: number;
  /**
   * When a holder that could not renew stops acting, counted from when its last successful renewal was sent. A Lease does not fence:
   * what is left until the end is for writes that are on their way.
   */
  readonly actMs: number;
  /** How often a candidate looks, and a holder tries again after a failure. */
  readonly retryMs: number;
}

export const LEASE_TIMES: LeaseTimes = {
  durationMs: 15_000,
  renewMs: 5_000,
  actMs: 10_000,
  retryMs: 2_000,
};

/**
 * How long an answer may take. A renewal that hangs is given up so early that another try, which may take as long, ends before the
 * holder must stop acting. Should the given up one arrive after all, its version is old or it renews what is ours: no harm is done.
 */
export function leaseAnswerMs({ actMs, renewMs }: LeaseTimes): number {
  return (actMs - renewMs) / 2;
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
  /** What was seen last, and since when it has stood. `undefined`: nothing was read yet. */
  readonly seen: { readonly record: LeaseRecord | undefined; readonly since: number } | undefined;
  /** When the renewal was sent by which we hold the lease. */
  readonly heldSince: number | undefined;
}

export function newLeaseState(identity: string, times: LeaseTimes = LEASE_TIMES): LeaseState {
  return { identity, times, seen: undefined, heldSince: undefined };
}

/** A read was answered; `undefined`: there is no Lease. */
export function leaseRead(state: LeaseState, record: LeaseRecord | undefined, now: number): LeaseState {
  const same = state.seen !== undefined && state.seen.record?.resourceVersion === record?.resourceVersion;
  const lost = record?.holder !== state.identity;
  return {
    ...state,
    seen: { record, since: same ? (state.seen?.since ?? now) : now },
    heldSince: lost ? undefined : state.heldSince,
  };
}

/** A write of ours was taken; `sent` is when it left. */
export function leaseWritten(state: LeaseState, record: LeaseRecord, sent: number): LeaseState {
  return { ...state, seen: { record, since: sent }, heldSince: sent };
}

/** Someone else wrote, or it can't be known what happened: look again before anything else. */
export function leaseUncertain(state: LeaseState): LeaseState {
  return { ...state, seen: undefined };
}

/** Whether the holder may act now. */
export function leads(state: LeaseState, now: number): boolean {
  return state.heldSince !== undefined && now - state.heldSince < state.times.actMs;
}

export type LeaseStep =
  | { readonly step: "read" }
  | {
      readonly step: "write";
      /** `undefined`: it must not exist yet. */
      readonly resourceVersion: string | undefined;
      readonly transitions: number;
      /** False: a renewal of what is ours already. */
      readonly takeover: boolean;
    };

/** What to do next. */
export function leaseStep(state: LeaseState, now: number): LeaseStep {
  const { seen, identity } = state;
  if (seen === undefined) return { step: "read" };
  const { record, since } = seen;
  if (record === undefined)
    return { step: "write", resourceVersion: undefined, transitions: 0, takeover: true };
  const { resourceVersion, transitions, holder } = record;
  if (holder === identity) {
    // Ours by name but not by this process's own doing: a predecessor of the same name. Taking it is what renewing would be.
    return { step: "write", resourceVersion, transitions, takeover: state.heldSince === undefined };
  }
  if (holder === "" || now - since >= record.durationMs) {
    return { step: "write", resourceVersion, transitions: transitions + 1, takeover: true };
  }
  return { step: "read" };
}

/** How long to wait before the next step, where the last one went well. */
export function leaseWait(state: LeaseState, now: number): number {
  const { seen, times, heldSince } = state;
  if (heldSince !== undefined) return Math.max(0, heldSince + times.renewMs - now);
  if (seen?.record === undefined || seen.record.holder === "") return times.retryMs;
  // Not later than the moment at which it may be taken.
  return Math.min(times.retryMs, Math.max(1, seen.since + seen.record.durationMs - now));
}
