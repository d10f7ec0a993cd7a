import { X509Certificate } from "node:crypto";
import type { Socket } from "node:net";
import { type DetailedPeerCertificate, TLSSocket } from "node:tls";
import { type HttpResponse, textResponse } from "../http/http-response.ts";
import { authoritiesReached, certificatesIn } from "./bundle.ts";

/** The accepted clients: with a certificate of this CA and, if names are given, one of them. */
export interface ClientCheck {
  readonly ca: string;
  /** Common names. @default any */
  readonly names?: readonly string[] | undefined;
}

const NONE = textResponse(401, "client certificate required");
const UNTRUSTED = textResponse(403, "client certificate signed by unknown authority");
const UNKNOWN = textResponse(403, "client certificate's common name is not allowed");
const EXPIRED = textResponse(403, "client certificate is not valid now");

/** Intermediate certificates that a client may send; the chain of a front proxy has at most one. */
const LONGEST_CHAIN = 8;

type Verdict = HttpResponse | { readonly validUntil: number };

/**
 * Checks the client certificate of each connection once: it can't change during a connection. The handshake verified
 * it, perhaps with CAs that have been replaced since, so it is also compared with the current CAs.
 */
export class ClientCertificates {
  readonly #names: ReadonlySet<string> | undefined;
  readonly #authorities: readonly X509Certificate[];
  readonly #checked = new WeakMap<Socket, Verdict>();

  constructor({ ca, names }: ClientCheck) {
    this.#names = names === undefined ? undefined : new Set(names);
    this.#authorities = certificatesIn(ca);
  }

  /** `undefined` if the client is accepted. */
  refuse(socket: Socket): HttpResponse | undefined {
    let verdict = this.#checked.get(socket);
    if (verdict === undefined) {
      verdict = this.#check(socket);
      this.#checked.set(socket, verdict);
    }
    if (!("validUntil" in verdict)) return verdict;
    return Date.now() < verdict.validUntil ? undefined : EXPIRED;
  }

  #check(socket: Socket): Verdict {
    if (!(socket instanceof TLSSocket)) return NONE;
    const certificate = socket.getPeerCertificate(true);
    if (certificate === null || Object.keys(certificate).length === 0) return NONE;
    const chain = chainOf(certificate);
    if (!socket.authorized || authoritiesReached(this.#authorities, chain, Date.now()).length === 0)
      return UNTRUSTED;
    const { CN } = certificate.subject;
    const names = CN === undefined ? [] : [CN].flat();
    if (this.#names !== undefined && !names.some((name) => this.#names?.has(name))) return UNKNOWN;
    return { validUntil: Date.parse(certificate.valid_to) };
  }
}

function chainOf(certificate: DetailedPeerCertificate): X509Certificate[] {
  const chain: X509Certificate[] = [];
  let next: DetailedPeerCertificate | undefined = certificate;
  // The issuer of a root is the root itself.
  while (
    next?.raw !== undefined &&
    chain.length <= LONGEST_CHAIN &&
    chain.at(-1)?.raw.equals(next.raw) !== true
  ) {
    chain.push(new X509Certificate(next.raw));
    next = next.issuerCertificate;
  }
  return chain;
}
