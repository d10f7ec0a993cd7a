// Authorities for tests that sign more than one certificate, like those of cert-manager, the service CA and
// administrators.
import { webcrypto } from "node:crypto";
import "reflect-metadata/lite";
import {
  BasicConstraintsExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import type { OwnCertificate } from "../../../src/admission/tls/certificate.ts";

const P256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 86_400_000;

export interface SigningOptions {
  readonly names?: readonly string[];
  readonly from?: number;
  readonly days?: number;
}

export class TestAuthority {
  readonly #certificate: X509Certificate;
  readonly #keys: webcrypto.CryptoKeyPair;
  /** The intermediate certificates that a server sends with its certificate. */
  readonly #between: string;

  private constructor(certificate: X509Certificate, keys: webcrypto.CryptoKeyPair, between: string) {
    this.#certificate = certificate;
    this.#keys = keys;
    this.#between = between;
  }

  static async create(name: string, parent?: TestAuthority): Promise<TestAuthority> {
    const keys = await newKeys();
    const certificate = await X509CertificateGenerator.create({
      subject: `CN=${name}`,
      issuer: parent === undefined ? `CN=${name}` : parent.#certificate.subject,
      publicKey: keys.publicKey,
      signingKey: (parent === undefined ? keys : parent.#keys).privateKey,
      notBefore: new Date(Date.now() - DAY_MS),
      notAfter: new Date(Date.now() + 10 * DAY_MS),
      signingAlgorithm: P256,
      extensions: [
        new BasicConstraintsExtension(true, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign, true),
      ],
    });
    const between = parent === undefined ? "" : `${certificate.toString("pem")}\n${parent.#between}`;
    return new TestAuthority(certificate, keys, between);
  }

  get pem(): string {
    return `${this.#certificate.toString("pem")}\n`;
  }

  async sign({
    names = [],
    from = Date.now() - DAY_MS,
    days = 5,
  }: SigningOptions = {}): Promise<OwnCertificate> {
    const keys = await newKeys();
    const leaf = await X509CertificateGenerator.create({
      subject: "CN=usher",
      issuer: this.#certificate.subject,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      notBefore: new Date(from),
      notAfter: new Date(from + days * DAY_MS),
      signingAlgorithm: P256,
      extensions: [
        new SubjectAlternativeNameExtension(names.map((value) => ({ type: "dns", value }) as const)),
      ],
    });
    const key = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey);
    return {
      cert: `${leaf.toString("pem")}\n${this.#between}`,
      key: `${PemConverter.encode(key, "PRIVATE KEY")}\n`,
      ca: this.pem,
    };
  }
}

function newKeys() {
  return webcrypto.subtle.generateKey(P256, true, ["sign", "verify"]);
}
