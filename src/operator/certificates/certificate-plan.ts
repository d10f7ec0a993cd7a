import type { OwnCertificate } from "../../admission/tls/certificate.ts";
import { authorityIn, type CertificateRecord, expiryOf, isExpired, unusable } from "./certificate-record.ts";
import { type PathTokens, rotated, TRUST_MS, tokensDue } from "./path-tokens.ts";

/** A quarter of a certificate's year: renewal may fail for this time before any call does. */
export const RENEW_BEFORE_MS = 90 * 86_400_000;

/** Whether API servers trust the CA of the next pair. */
export type Trust =
  /** No webhook is registered, so there are no calls. */
  | "no webhooks"
  /** It is not in every published bundle. */
  | "not yet"
  /** For how long it has been in all of them. A duration, so that changing a clock does not affect it. */
  | { readonly forMs: number };

/** The next change to the Secret. Applying it must fail if the Secret has changed since. */
export type CertificatePlan =
  | { readonly step: "nothing" }
  /** Issue a pair and use it immediately, because the current one is unusable. */
  | { readonly step: "replace"; readonly why: string }
  /** Issue the next pair, and publish its CA. */
  | { readonly step: "stage"; readonly why: string }
  /** Use the next pair. */
  | { readonly step: "promote" }
  /** Drop what is no longer needed. */
  | { readonly step: "drop"; readonly what: "next" | "previous" }
  /** Publish the next path token, and create the one after it. */
  | { readonly step: "rotate-paths"; readonly paths: PathTokens };

export interface CertificateState {
  readonly record: CertificateRecord;
  /** The DNS names that it must be valid for. */
  readonly names: readonly string[];
  /** By the API server's clock, which decides whether a certificate is valid. */
  readonly now: number;
  /** A client may have seen the current path token. */
  readonly pathsShown?: boolean;
}

/** The step of any replica before it can serve: only one that can't wait for a leader. */
export function planStart(state: CertificateState): CertificatePlan {
  const plan = planUsable(state);
  if (plan.step !== "nothing" || state.record.paths !== undefined) return plan;
  return { step: "rotate-paths", paths: rotated(undefined, state.now) };
}

function planUsable({ record, names, now }: CertificateState): CertificatePlan {
  const { current } = record;
  if (current === undefined) return { step: "replace", why: "there is none" };
  const why = unusable(current, names, now);
  return why === undefined ? { step: "nothing" } : { step: "replace", why };
}

/** The leader's plan, one step at a time. A certificate that is due comes before a path token that is. */
export function planCertificates(state: CertificateState, trust: Trust): CertificatePlan {
  const { record, now, pathsShown = false } = state;
  const plan = planRenewal(state, trust);
  if (plan.step !== "nothing") return plan;
  const paths = tokensDue(record.paths, now, pathsShown);
  return paths === undefined ? plan : { step: "rotate-paths", paths };
}

/**
 * Before a certificate expires, the next one is issued and its CA published beside the old one; once API servers trust
 * both, all replicas switch to it. The old CA stays until its certificate has expired, because a replica that can't
 * read the Secret still uses it, and trusting it is safe: its key no longer exists.
 */
export function planRenewal(state: CertificateState, trust: Trust): CertificatePlan {
  const { record, names, now } = state;
  const start = planUsable(state);
  if (start.step !== "nothing" || record.current === undefined) return start;
  const { current, next, previous } = record;
  if (next !== undefined) {
    if (unusable(next, names, now) !== undefined) return { step: "drop", what: "next" };
    const trusted = trust === "no webhooks" || (trust !== "not yet" && trust.forMs >= TRUST_MS);
    return trusted ? { step: "promote" } : { step: "nothing" };
  }
  const left = expiryOf(current) - now;
  if (left <= RENEW_BEFORE_MS) {
    return { step: "stage", why: `it expires in ${Math.floor(left / 86_400_000)} days` };
  }
  if (previous !== undefined && isExpired(previous, now)) return { step: "drop", what: "previous" };
  return { step: "nothing" };
}

/** The content of the Secret after a step. */
export async function recordAfter(
  record: CertificateRecord,
  plan: CertificatePlan,
  make: () => Promise<OwnCertificate>,
  now: number,
): Promise<CertificateRecord> {
  const { current, next, paths } = record;
  switch (plan.step) {
    case "nothing":
      return record;
    case "replace":
      return {
        current: await make(),
        next: undefined,
        previous: authorityIn(current?.ca) ?? record.previous,
        paths: paths ?? rotated(undefined, now),
      };
    case "stage":
      return { ...record, next: await make() };
    case "promote":
      return { ...record, current: next, next: undefined, previous: current?.ca };
    case "drop":
      return { ...record, [plan.what]: undefined };
    case "rotate-paths":
      return { ...record, paths: plan.paths };
  }
}
