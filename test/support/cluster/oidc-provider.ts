// An OpenID Connect provider that gives ID tokens for refresh tokens, for tests.
import { once } from "node:events";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";

export interface Certified {
  readonly cert: string;
  readonly key: string;
}

/** As a JWT says when it ends; nobody here looks at the signature. */
export function tokenUntil(milliseconds: number, word: string): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return [part({ alg: "none" }), part({ exp: milliseconds / 1_000, word }), "signature"].join(".");
}

export class TestProvider {
  readonly #server: Server;
  /** What it was asked for, as forms. */
  readonly asked: Record<string, string>[] = [];
  /** What it answers next: a status and a body. */
  answer: () => readonly [number, unknown] = () => [200, {}];
  /** What its discovery document says instead. */
  discovery: object | undefined;

  constructor(certificate: Certified) {
    this.#server = createServer({ ...certificate }, async (request, response) => {
      let body = "";
      for await (const chunk of request.setEncoding("utf8")) body += String(chunk);
      if (request.url === "/realm/.well-known/openid-configuration") {
        response.end(JSON.stringify(this.discovery ?? { token_endpoint: `${this.url}/token` }));
        return;
      }
      this.asked.push(Object.fromEntries(new URLSearchParams(body)));
      const [status, value] = this.answer();
      response.statusCode = status;
      response.end(typeof value === "string" ? value : JSON.stringify(value));
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
