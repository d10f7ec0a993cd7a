import { type CertificateRecord, expiryOf, isExpired, unusable } from "./certificate-record.ts";

/** A quarter of a certificate's year: so long may renewing fail before anybody is refused, and somebody will have looked. */
export const RENEW_BEFORE_MS = 90 * 86_400_000;

/**
 * How long a new authority stands in the webhook configurations before anything is served with it. API servers follow these by a
 * watch, mostly within a second; one that has lost its watch finds that out within a minute.
 */
export const TRUST_MS = 120_000;

/** Whether API servers trust the authority of the next pair. */
export type Trust =
  /** No webhook is registered, so nobody calls. */
  | "nobody calls"
  /** The published bundles do not have it, not all of them. */
  | "not yet"
  /** For how long all of them have had it. A duration, so that nobody's setting of a clock makes it longer. */
  | { readonly forMs: number };

/** What to do with the Secret. Whoever carries it out must fail where the Secret has changed meanwhile. */
export type CertificatePlan =
  | { readonly step: "nothing" }
  /** Make a pair, and serve with it at once, for what is there is of no use. */
  | { readonly step: "replace"; readonly why: string }
  /** Make the next pair, and only have it trusted. */
  | { readonly step: "stage"; readonly why: string }
  /** Serve with the next pair. */
  | { readonly step: "promote" }
  /** Drop what nobody can need any more. */
  | { readonly step: "forget"; readonly what: "next" | "previous" };

export interface CertificateSituation {
  readonly record: CertificateRecord;
  /** What it must be valid for. */
  readonly names: readonly string[];
  /** As the API server has it: that clock is the judge. */
  readonly now: number;
}

/** What any replica does before it can serve: only what can't wait for a leader. */
export function planStart({ record, names, now }: CertificateSituation): CertificatePlan {
  const { current } = record;
  if (current === undefined) return { step: "replace", why: "there is none" };
  const why = unusable(current, names, now);
  return why === undefined ? { step: "nothing" } : { step: "replace", why };
}

/**
 * What the leader does, one step at a time: before a certificate ends, the next one is made and its authority published beside the
 * old; once API servers trust both, all replicas change over; and the old authority stays until its certificate has run out, because
 * a replica that can't read the Secret still serves with it, and trusting it costs nothing: its key exists nowhere.
 */
export function planCertificates(situation: CertificateSituation, trust: Trust): CertificatePlan {
  const { record, names, now } = situation;
  const start = planStart(situation);
  if (start.step !== "nothing" || record.current === undefined) return start;
  const { current, next, previous } = record;
  if (next !== undefined) {
    if (unusable(next, names, now) !== undefined) return { step: "forget", what: "next" };
    const trusted = trust === "nobody calls" || (trust !== "not yet" && trust.forMs >= TRUST_MS);
    return trusted ? { step: "promote" } : { step: "nothing" };
  }
  const left = expiryOf(current) - now;
  if (left <= RENEW_BEFORE_MS) {
    return { step: "stage", why: `it ends in ${Math.floor(left / 86_400_000)} days` };
  }
  if (previous !== undefined && isExpired(previous, now)) return { step: "forget", what: "previous" };
  return { step: "nothing" };
}
