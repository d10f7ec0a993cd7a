import { acceptedBy, accepts } from "./acceptance.ts";

export interface SwapState {
  /** Chains: of the certificate in use, and of the new one. */
  readonly served: string;
  readonly offered: string;
  /** The distinct bundles of the webhook configurations; empty if nothing is published, `undefined` while that is unknown. */
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
 * Whether a new certificate is served now. An untrusted one has to wait while the old one is trusted: its CA may be
 * published soon, and a mistaken write may be reverted. Once both are trusted, lagging API servers must learn of it,
 * too, unless the CA is the same.
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
