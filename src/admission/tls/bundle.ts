import { X509Certificate } from "node:crypto";

const BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** All certificates in a text; skips anything else. */
export function certificatesIn(text: string): X509Certificate[] {
  return (text.match(BLOCK) ?? []).flatMap((block) => {
    try {
      return [new X509Certificate(block)];
    } catch {
      return [];
    }
  });
}

/** Only the certificates of a text, each once: an API server that can't parse a bundle calls no webhook. */
export function soundBundle(...texts: readonly string[]): string {
  return certificatesOf(texts).join("");
}

/** The certificates of texts, each once. */
export function certificatesOf(texts: readonly string[]): string[] {
  return [...new Set(texts.flatMap(certificatesIn).map(pemOf))];
}

export function pemOf(certificate: X509Certificate): string {
  return `${certificate.toString().trim()}\n`;
}

/** The root CAs of a chain, through its intermediates; every certificate must be valid now. */
export function authoritiesReached(
  authorities: readonly X509Certificate[],
  [leaf, ...between]: readonly X509Certificate[],
  now: number,
): X509Certificate[] {
  const roots = authorities.filter((one) => isValid(one, now));
  const reached = new Set<X509Certificate>();
  const seen = new Set<X509Certificate>();
  const climb = (from: X509Certificate): void => {
    if (seen.has(from) || !isValid(from, now)) return;
    seen.add(from);
    for (const root of roots)
      if (root.fingerprint256 === from.fingerprint256 || signed(root, from)) reached.add(root);
    for (const next of between) if (signed(next, from)) climb(next);
  };
  if (leaf !== undefined) climb(leaf);
  return [...reached];
}

function signed(issuer: X509Certificate, subject: X509Certificate): boolean {
  return issuer.ca && subject.checkIssued(issuer) && subject.verify(issuer.publicKey);
}

function isValid(certificate: X509Certificate, now: number): boolean {
  return Date.parse(certificate.validFrom) <= now && now < Date.parse(certificate.validTo);
}
