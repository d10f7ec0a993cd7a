// An OpenID Connect provider that exchanges refresh tokens for ID tokens.
import { once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { isObject } from "../../../src/core/json.ts";

export interface Certified {
  readonly cert: string;
  readonly key: string;
}

/** The issuer in its tokens and its discovery document, independent of its address. */
const ISSUER = "https://issuer.example/realm";

/** An ID token for the client `usher` that expires at this time. Its signature is not valid: clients do not check it over TLS. */
export function idTokenUntil(milliseconds: number, subject: string, more: object = {}): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const exp = milliseconds / 1_000;
  const claims = { iss: ISSUER, aud: "usher", sub: subject, iat: exp - 3_600, exp, ...more };
  return [part({ alg: "RS256" }), part(claims), part({ signature: "none" })].join(".");
}

export class TestProvider {
  readonly #server: Server;
  /** The forms that the token endpoint received. */
  readonly forms: Record<string, string>[] = [];
  /** Status and body of the token endpoint's next response. */
  respond: () => readonly [number, unknown] = () => [200, {}];
  /** Replaces the discovery document, except its issuer. */
  discovery: object | undefined;

  constructor(certificate: Certified) {
    this.#server = createServer({ ...certificate }, async (request, response) => {
      let body = "";
      for await (const chunk of request.setEncoding("utf8")) body += String(chunk);
      if (request.url === "/realm/.well-known/openid-configuration") {
        const document = this.discovery ?? { token_endpoint: `${this.url}/token` };
        response.end(JSON.stringify({ issuer: ISSUER, ...document }));
        return;
      }
      this.forms.push(Object.fromEntries(new URLSearchParams(body)));
      const [status, value] = this.respond();
      response.statusCode = status;
      const required = { access_token: "access", token_type: "Bearer" };
      response.end(
        typeof value === "string"
          ? value
          : JSON.stringify(status === 200 && isObject(value) ? { ...required, ...value } : value),
      );
    });
  }

  async listen(): Promise<void> {
    this.#server.listen(0, "127.0.0.1");
    await once(this.#server, "listening");
  }

  get url(): string {
    return `https://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
