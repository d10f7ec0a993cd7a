import { authoritiesReached, certificatesIn, pemOf } from "../../admission/tls/bundle.ts";

/**
 * Whether a client that trusts these authorities accepts a server with this chain, as Go's does, which API servers are written in: there
 * is a way from the certificate over what the server sends to an authority, all of it is valid now, and the certificate is for the name.
 */
export function accepts(authorities: string, chain: string, name: string, now: number): boolean {
  return acceptedBy(authorities, chain, name, now).length > 0;
}

/** The authorities that a chain leads to. */
export function acceptedBy(authorities: string, chain: string, name: string, now: number): string[] {
  const certificates = certificatesIn(chain);
  // A name in the subject alone counts for no client of today.
  if (certificates[0]?.checkHost(name, { subject: "never" }) === undefined) return [];
  return authoritiesReached(certificatesIn(authorities), certificates, now).map(pemOf);
}
