import { acceptedBy, accepts } from "./acceptance.ts";

export interface SwapState {
  /** Chains: of the certificate in use, and of the one that came. */
  readonly served: string;
  readonly offered: string;
  /** What the webhook configurations trust, each bundle once; none where nothing is published, `undefined` while that is unknown. */
  readonly bundles: readonly string[] | undefined;
  /** Since when these were the bundles. */
  readonly publishedForMs: number;
  /** How long API servers may take to see them. */
  readonly trustMs: number;
  /** The name by which API servers call. */
  readonly name: string;
  readonly now: number;
}

/**
 * Whether a certificate that came is served now. One that API servers do not trust has to wait while the old one is trusted: its authority
 * may be on the way, and others may be about to undo what they wrote by mistake. Once both are trusted, API servers that are behind must
 * learn of it, too, unless the authority is the same.
 */
export function isSwapDue({
  served,
  offered,
  bundles,
  publishedForMs,
  trustMs,
  name,
  now,
}: SwapState): boolean {
  if (bundles === undefined || bundles.length === 0) return true;
  const trusts = (chain: string) => bundles.every((bundle) => accepts(bundle, chain, name, now));
  if (!trusts(served)) return true;
  if (!trusts(offered)) return false;
  const stays = bundles.every((bundle) =>
    accepts(acceptedBy(bundle, served, name, now).join(""), offered, name, now),
  );
  return stays || publishedForMs >= trustMs;
}
