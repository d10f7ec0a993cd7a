import { isIP } from "node:net";

/** A certificate with its key, as PEM. `cert` may hold a chain, the server's own first. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** A certificate created at start: a client must trust `ca`. */
export interface OwnCertificate extends KeyPair {
  readonly ca: string;
}

/** A pair that its owner renews while it is served. */
export interface LivePair {
  /** The pair to serve with now. */
  readonly current: KeyPair;
  /** Calls `use` with every new pair. */
  readonly follow: (use: (pair: KeyPair) => void) => { readonly stop: () => void };
}

/**
 * A certificate created at start is kept in memory and need only outlive the process. A year, because several clients
 * reject anything much longer.
 */
export const OWN_CERTIFICATE_DAYS = 365;

const DAY_MS = 86_400_000;

/** Clients whose clock is behind, by a wrong time zone or a day without a time server, must accept it immediately. */
const CLOCK_SKEW_MS = DAY_MS;

/** Signs 28 times faster than RSA 2048, and every current client supports it. */
const P256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

/** The names of a server on this address on the same machine. An address that means "all" is not a name. */
export function namesFor(bind: string, more: readonly string[] = []): string[] {
  const any = bind === "0.0.0.0" || bind === "::" || bind === "";
  return [...new Set(["localhost", "127.0.0.1", "::1", ...(any ? [] : [bind]), ...more])];
}

/** Makes a pair for these names. `now`: milliseconds since 1970. */
export type IssueCertificate = (names: readonly string[], now: number) => Promise<OwnCertificate>;

/**
 * A certificate for these names and addresses, signed by a CA created for it. The CA's key is discarded, so trusting
 * the CA is trusting this one certificate.
 */
export async function makeCertificate(
  names: readonly string[],
  now: number = Date.now(),
): Promise<OwnCertificate> {
  // The library's decorators call Reflect.defineMetadata as soon as it is loaded.
  await import("reflect-metadata/lite");
  const x509 = await import("@peculiar/x509");
  const { subtle } = globalThis.crypto;
  const authority = await subtle.generateKey(P256, true, ["sign", "verify"]);
  const server = await subtle.generateKey(P256, true, ["sign", "verify"]);
  const notBefore = new Date(now - CLOCK_SKEW_MS);
  const notAfter = new Date(notBefore.getTime() + OWN_CERTIFICATE_DAYS * DAY_MS);
  const { KeyUsageFlags, ExtendedKeyUsage } = x509;
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=usher (made at start)",
    keys: authority,
    notBefore,
    notAfter,
    signingAlgorithm: P256,
    extensions: [
      new x509.BasicConstraintsExtension(true, 0, true),
      new x509.KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      await x509.SubjectKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  const leaf = await x509.X509CertificateGenerator.create({
    subject: "CN=usher",
    issuer: ca.subject,
    publicKey: server.publicKey,
    signingKey: authority.privateKey,
    notBefore,
    notAfter,
    signingAlgorithm: P256,
    extensions: [
      new x509.BasicConstraintsExtension(false, undefined, true),
      new x509.KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new x509.SubjectAlternativeNameExtension(
        names.map((name) => ({ type: isIP(name) === 0 ? "dns" : "ip", value: name }) as const),
      ),
      await x509.AuthorityKeyIdentifierExtension.create(authority.publicKey),
      await x509.SubjectKeyIdentifierExtension.create(server.publicKey),
    ],
  });
  const key = await subtle.exportKey("pkcs8", server.privateKey);
  return {
    cert: `${leaf.toString("pem")}\n`,
    key: `${x509.PemConverter.encode(key, "PRIVATE KEY")}\n`,
    ca: `${ca.toString("pem")}\n`,
  };
}
