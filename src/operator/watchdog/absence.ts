// How long no replica was ready, as far as it was observed. watchdog.ts decides by it. Pure: state and observation in, state out.

/** The state of the replicas at one time. */
export interface ReplicaObservation {
  /** Milliseconds of a clock that is never set. */
  readonly at: number;
  readonly ready: boolean;
  /** Of the endpoints; empty where there are none. */
  readonly version: string;
}

export interface Absence {
  /** For how long no replica is ready, without the times in which no watchdog looked. */
  readonly observedMs: number;
  readonly last: ReplicaObservation;
}

/** The record that a watchdog leaves for the next one. */
export interface AbsenceRecord {
  readonly observedMs: number;
  readonly version: string;
}

/**
 * Two observations further apart than this have a time between them that was not observed: the API server did not answer, or the
 * watchdog was not running. Long enough for a request that timed out and the next one.
 */
export const LONGEST_GAP_MS = 30_000;

/** The first observation of a watchdog. It continues the record of another where no endpoint has changed since. */
export function beginAbsence(seen: ReplicaObservation, record?: AbsenceRecord): Absence {
  const continues = record !== undefined && !seen.ready && isSame(seen.version, record.version);
  return { observedMs: continues ? record.observedMs : 0, last: seen };
}

export function observe(absence: Absence, seen: ReplicaObservation): Absence {
  const { observedMs, last } = absence;
  if (seen.ready || last.ready) return { observedMs: 0, last: seen };
  const gapMs = Math.max(0, seen.at - last.at);
  if (gapMs <= LONGEST_GAP_MS) return { observedMs: observedMs + gapMs, last: seen };
  // The time between does not count. The time observed before counts only where no replica can have been ready since.
  return { observedMs: isSame(seen.version, last.version) ? observedMs : 0, last: seen };
}

/** Whether both are the same version. A Service without EndpointSlices has the empty version, which equals no other. */
function isSame(version: string, before: string): boolean {
  return version !== "" && version === before;
}
