import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { type HttpResponse, textResponse } from "../review/http-response.ts";

/** The clients that are accepted: with a certificate of this authority and, where names are given, one of them. */
export interface ClientCheck {
  readonly ca: string;
  /** Common names. @default any */
  readonly names?: readonly string[] | undefined;
}

const NONE = textResponse(401, "client certificate required");
const UNTRUSTED = textResponse(403, "client certificate signed by unknown authority");
const UNKNOWN = textResponse(403, "client certificate's common name is not allowed");

/** Checks the client certificates of connections, each once: a certificate can't change during one. */
export class ClientCertificates {
  readonly #names: ReadonlySet<string> | undefined;
  readonly #checked = new WeakMap<Socket, HttpResponse | "accepted">();

  constructor({ names }: ClientCheck) {
    this.#names = names === undefined ? undefined : new Set(names);
  }

  /** `undefined` where the client is accepted. */
  refuse(socket: Socket): HttpResponse | undefined {
    let verdict = this.#checked.get(socket);
    if (verdict === undefined) {
      verdict = this.#check(socket);
      this.#checked.set(socket, verdict);
    }
    return verdict === "accepted" ? undefined : verdict;
  }

  #check(socket: Socket): HttpResponse | "accepted" {
    if (!(socket instanceof TLSSocket)) return NONE;
    const certificate = socket.getPeerCertificate();
    if (certificate === null || Object.keys(certificate).length === 0) return NONE;
    if (!socket.authorized) return UNTRUSTED;
    if (this.#names === undefined) return "accepted";
    const { CN } = certificate.subject;
    const names = CN === undefined ? [] : [CN].flat();
    return names.some((name) => this.#names?.has(name)) ? "accepted" : UNKNOWN;
  }
}
