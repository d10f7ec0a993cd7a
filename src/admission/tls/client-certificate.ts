import type { Socket } from "node:net";
import { TLSSocket } from "node:tls";
import { type HttpResponse, textResponse } from "../review/http-response.ts";

/** Who may call: holders of a certificate that this authority signed and, if names are given, that carries one of them. */
export interface ClientCheck {
  readonly ca: string;
  /** Common names. @default any */
  readonly names?: readonly string[] | undefined;
}

const NONE = textResponse(401, "a client certificate is needed to call this webhook");
const UNTRUSTED = textResponse(
  403,
  "the client certificate was not signed by the authority that is trusted here",
);
const UNKNOWN = textResponse(
  403,
  "the client certificate's common name is not among those that may call this webhook",
);

/** Judges connections, each once: a certificate can't change while one lives. */
export class Clients {
  readonly #names: ReadonlySet<string> | undefined;
  readonly #judged = new WeakMap<Socket, HttpResponse | "welcome">();

  constructor({ names }: ClientCheck) {
    this.#names = names === undefined ? undefined : new Set(names);
  }

  /** `undefined` where the caller is welcome. */
  refuse(socket: Socket): HttpResponse | undefined {
    let verdict = this.#judged.get(socket);
    if (verdict === undefined) {
      verdict = this.#judge(socket);
      this.#judged.set(socket, verdict);
    }
    return verdict === "welcome" ? undefined : verdict;
  }

  #judge(socket: Socket): HttpResponse | "welcome" {
    if (!(socket instanceof TLSSocket)) return NONE;
    const certificate = socket.getPeerCertificate();
    if (certificate === null || Object.keys(certificate).length === 0) return NONE;
    if (!socket.authorized) return UNTRUSTED;
    if (this.#names === undefined) return "welcome";
    const { CN } = certificate.subject;
    const names = CN === undefined ? [] : [CN].flat();
    return names.some((name) => this.#names?.has(name)) ? "welcome" : UNKNOWN;
  }
}
