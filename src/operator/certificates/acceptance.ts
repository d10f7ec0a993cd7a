import { X509Certificate } from "node:crypto";

/**
 * Whether a client that trusts these authorities accepts a server with this chain, as Go's does, which API servers are written in: there
 * is a way from the certificate over what the server sends to an authority, all of it is valid now, and the certificate is for the name.
 */
export function accepts(authorities: string, chain: string, name: string, now: number): boolean {
  return acceptedBy(authorities, chain, name, now).length > 0;
}

/** The authorities that a chain leads to. */
export function acceptedBy(authorities: string, chain: string, name: string, now: number): string[] {
  const [leaf, ...between] = certificatesIn(chain);
  // A name in the subject alone counts for no client of today.
  if (leaf === undefined || leaf.checkHost(name, { subject: "never" }) === undefined) return [];
  const roots = certificatesIn(authorities).filter((one) => isValid(one, now));
  const reached = new Set<X509Certificate>();
  const seen = new Set<X509Certificate>();
  const climb = (from: X509Certificate): void => {
    if (seen.has(from) || !isValid(from, now)) return;
    seen.add(from);
    for (const root of roots)
      if (root.fingerprint256 === from.fingerprint256 || signed(root, from)) reached.add(root);
    for (const next of between) if (signed(next, from)) climb(next);
  };
  climb(leaf);
  return [...reached].map((one) => pemOf(one));
}

function signed(issuer: X509Certificate, subject: X509Certificate): boolean {
  return issuer.ca && subject.checkIssued(issuer) && subject.verify(issuer.publicKey);
}

function isValid(certificate: X509Certificate, now: number): boolean {
  return Date.parse(certificate.validFrom) <= now && now < Date.parse(certificate.validTo);
}

const BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** All certificates in a text; what is none is left out. */
function certificatesIn(text: string): X509Certificate[] {
  return (text.match(BLOCK) ?? []).flatMap((block) => {
    try {
      return [new X509Certificate(block)];
    } catch {
      return [];
    }
  });
}

/** The certificates of a text alone, each once: an API server that can't parse a bundle calls no webhook. */
export function soundBundle(...texts: readonly string[]): string {
  return certificatesOf(texts).join("");
}

/** The certificates of texts, each once. */
export function certificatesOf(texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap(certificatesIn).map(pemOf))];
}

function pemOf(certificate: X509Certificate): string {
  return `${certificate.toString().trim()}\n`;
}
