import { createPrivateKey, X509Certificate } from "node:crypto";
import type { OwnCertificate } from "../../admission/tls/certificate.ts";
import { isObject, type Json, type JsonObject, own } from "../../core/json.ts";
import { type PathTokens, parseTokens, tokensText } from "./path-tokens.ts";

/** The content of the Secret. Each pair has the CA that signed it; the CA's key is not kept. */
export interface CertificateRecord {
  /** The pair in use. Absent if the Secret is missing or empty. */
  readonly current: OwnCertificate | undefined;
  /** The pair to use once every API server trusts its authority. */
  readonly next: OwnCertificate | undefined;
  /** The CA of the previous pair: a replica may still use it. */
  readonly previous: string | undefined;
  /** The first segment of the webhooks' paths. Absent if an older version wrote the Secret. */
  readonly paths: PathTokens | undefined;
}

export const EMPTY_RECORD: CertificateRecord = {
  current: undefined,
  next: undefined,
  previous: undefined,
  paths: undefined,
};

const CURRENT = ["tls.crt", "tls.key", "ca.crt"] as const;
const NEXT = ["next-tls.crt", "next-tls.key", "next-ca.crt"] as const;
const PREVIOUS = "previous-ca.crt";
const PATHS = "webhook-paths.json";

export function recordOf(secret: Json | undefined): CertificateRecord {
  const data = own(secret, "data");
  return {
    current: pairAt(data, CURRENT),
    next: pairAt(data, NEXT),
    previous: textAt(data, PREVIOUS),
    paths: parseTokens(textAt(data, PATHS)),
  };
}

/** As the `data` of a Secret of type kubernetes.io/tls. */
export function dataOf({ current, next, previous, paths }: CertificateRecord): JsonObject {
  const data: Record<string, string> = {};
  const put = (key: string, text: string | undefined) => {
    if (text !== undefined) data[key] = Buffer.from(text).toString("base64");
  };
  for (const [names, pair] of [
    [CURRENT, current],
    [NEXT, next],
  ] as const) {
    put(names[0], pair?.cert);
    put(names[1], pair?.key);
    put(names[2], pair?.ca);
  }
  put(PREVIOUS, previous);
  put(PATHS, paths === undefined ? undefined : tokensText(paths));
  return data;
}

function pairAt(
  data: Json | undefined,
  [certKey, keyKey, caKey]: readonly [string, string, string],
): OwnCertificate | undefined {
  const cert = textAt(data, certKey);
  const key = textAt(data, keyKey);
  const ca = textAt(data, caKey);
  return cert === undefined || key === undefined || ca === undefined ? undefined : { cert, key, ca };
}

function textAt(data: Json | undefined, key: string): string | undefined {
  const value = isObject(data) ? own(data, key) : undefined;
  return typeof value === "string" && value !== ""
    ? Buffer.from(value, "base64").toString("utf8")
    : undefined;
}

/**
 * The CAs to trust, the one in use first; as PEM. Other text is dropped: an API server that can't parse a bundle calls
 * no webhook.
 */
export function bundleOf(
  { current, next, previous }: Omit<CertificateRecord, "paths">,
  ...more: readonly string[]
): string {
  const all = [current?.ca, next?.ca, previous, ...more].flatMap((text) => authorityIn(text) ?? []);
  return [...new Set(all)].join("");
}

/** The first certificate in a text; `undefined` if there is none. */
export function authorityIn(text: string | undefined): string | undefined {
  try {
    return text === undefined ? undefined : `${new X509Certificate(text).toString().trim()}\n`;
  } catch {
    return undefined;
  }
}

/** Whether a bundle, as in a webhook configuration, contains a CA. */
export function trusts(caBundle: string | undefined, ca: string): boolean {
  return Buffer.from(caBundle ?? "", "base64")
    .toString("utf8")
    .includes(ca.trim());
}

/** Why a pair can't be used, as the end of a sentence; `undefined` if it can. */
export function unusable(pair: OwnCertificate, names: readonly string[], now: number): string | undefined {
  try {
    const certificate = new X509Certificate(pair.cert);
    const authority = new X509Certificate(pair.ca);
    if (!certificate.checkPrivateKey(createPrivateKey(pair.key))) return "the key is another certificate's";
    if (!certificate.verify(authority.publicKey)) return "its authority did not sign it";
    if (expiryOf(pair) <= now) return `it expired on ${certificate.validTo}`;
    if (startOf(pair) > now) return `it is valid only from ${certificate.validFrom}`;
    const missing = names.filter((name) => certificate.checkHost(name) === undefined);
    return missing.length === 0 ? undefined : `it is not for ${missing.join(", ")}`;
  } catch {
    return "it is not a certificate with its key and authority";
  }
}

/** When the first of the two ends, in milliseconds since 1970. */
export function expiryOf({ cert, ca }: Pick<OwnCertificate, "cert" | "ca">): number {
  return Math.min(...[cert, ca].map((pem) => Date.parse(new X509Certificate(pem).validTo)));
}

/** When the second of the two begins. */
function startOf({ cert, ca }: Pick<OwnCertificate, "cert" | "ca">): number {
  return Math.max(...[cert, ca].map((pem) => Date.parse(new X509Certificate(pem).validFrom)));
}

export function isExpired(pem: string, now: number): boolean {
  try {
    return Date.parse(new X509Certificate(pem).validTo) <= now;
  } catch {
    return true;
  }
}
