import { authoritiesReached, certificatesIn, pemOf } from "../../admission/tls/bundle.ts";

/**
 * Whether a client that trusts these CAs accepts a server with this chain, as Go's TLS does, which API servers use:
 * there is a path from the certificate through the sent intermediates to a CA, all certificates are valid now, and the
 * certificate has the name.
 */
export function accepts(authorities: string, chain: string, name: string, now: number): boolean {
  return acceptedBy(authorities, chain, name, now).length > 0;
}

/** The CAs at the end of a chain. */
export function acceptedBy(authorities: string, chain: string, name: string, now: number): string[] {
  const certificates = certificatesIn(chain);
  // Current clients ignore a name that is only in the subject.
  if (certificates[0]?.checkHost(name, { subject: "never" }) === undefined) return [];
  return authoritiesReached(certificatesIn(authorities), certificates, now).map(pemOf);
}
