// A certificate authority for one test cluster: a certificate that it signs authenticates its user to the API server.
import "reflect-metadata/lite";
import { createPrivateKey, createPublicKey, KeyObject, webcrypto } from "node:crypto";
import { isIP } from "node:net";
import * as x509 from "@peculiar/x509";

const ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };
const DAY_MS = 86_400_000;

/** A certificate with its private key, both PEM. */
export interface KeyedCertificate {
  readonly certificate: string;
  readonly key: string;
}

export interface Request {
  readonly user: string;
  readonly groups?: readonly string[];
  /** DNS names and IP addresses, for a server. */
  readonly names?: readonly string[];
  /** @default both */
  readonly usages?: readonly ("client" | "server")[];
}

export async function generateKeys(): Promise<webcrypto.CryptoKeyPair> {
  return webcrypto.subtle.generateKey(ALGORITHM, true, ["sign", "verify"]);
}

export function privatePem(keys: webcrypto.CryptoKeyPair): string {
  return KeyObject.from(keys.privateKey).export({ type: "pkcs8", format: "pem" }).toString();
}

export function publicPem(keys: webcrypto.CryptoKeyPair): string {
  return createPublicKey(privatePem(keys)).export({ type: "spki", format: "pem" }).toString();
}

/** Valid from yesterday, so that small clock differences don't matter, and for as long as any test cluster lives. */
function validity(): { notBefore: Date; notAfter: Date } {
  return { notBefore: new Date(Date.now() - DAY_MS), notAfter: new Date(Date.now() + 365 * DAY_MS) };
}

export class Authority {
  readonly pem: KeyedCertificate;
  readonly #signingKey: webcrypto.CryptoKey;
  readonly #issuer: x509.X509Certificate;

  private constructor(pem: KeyedCertificate, signingKey: webcrypto.CryptoKey) {
    this.pem = pem;
    this.#signingKey = signingKey;
    this.#issuer = new x509.X509Certificate(pem.certificate);
  }

  static async create(name: string): Promise<Authority> {
    const keys = await generateKeys();
    const certificate = await x509.X509CertificateGenerator.createSelfSigned({
      name: [{ CN: [name] }],
      keys,
      signingAlgorithm: ALGORITHM,
      ...validity(),
      extensions: [
        new x509.BasicConstraintsExtension(true, undefined, true),
        new x509.KeyUsagesExtension(
          x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature,
          true,
        ),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return new Authority(
      { certificate: certificate.toString("pem"), key: privatePem(keys) },
      keys.privateKey,
    );
  }

  /** The same authority, loaded in another process. */
  static async load(pem: KeyedCertificate): Promise<Authority> {
    const der = createPrivateKey(pem.key).export({ type: "pkcs8", format: "der" });
    const key = await webcrypto.subtle.importKey("pkcs8", der, ALGORITHM, false, ["sign"]);
    return new Authority(pem, key);
  }

  async issue(request: Request): Promise<KeyedCertificate> {
    const keys = await generateKeys();
    const names = (request.names ?? []).map((value) => ({
      type: isIP(value) ? ("ip" as const) : ("dns" as const),
      value,
    }));
    const { usages: wanted = ["client", "server"] } = request;
    const usages = wanted.map((one) => x509.ExtendedKeyUsage[`${one}Auth`]);
    const certificate = await x509.X509CertificateGenerator.create({
      // The API server reads the common name as the user and each organisation as a group.
      subject: [{ CN: [request.user] }, ...(request.groups ?? []).map((group) => ({ O: [group] }))],
      issuer: this.#issuer.subject,
      publicKey: keys.publicKey,
      signingKey: this.#signingKey,
      signingAlgorithm: ALGORITHM,
      ...validity(),
      extensions: [
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension(usages),
        await x509.AuthorityKeyIdentifierExtension.create(this.#issuer.publicKey),
        ...(names.length > 0 ? [new x509.SubjectAlternativeNameExtension(names)] : []),
      ],
    });
    return { certificate: certificate.toString("pem"), key: privatePem(keys) };
  }
}
