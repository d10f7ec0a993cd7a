// A thin JSON client: one request, the raw status and body. Made for tests, which often expect a refusal.

import type { IncomingMessage } from "node:http";
import { Agent, type RequestOptions, request } from "node:https";
import { isObject, type Json, type JsonObject, stringAt } from "../../../src/core/json.ts";
import { ADMIN, type Identities, type Identity } from "./identity.ts";

export interface Reply {
  readonly status: number;
  readonly headers: IncomingMessage["headers"];
  readonly body: Json;
}

/** A response of the API server other than success. */
export class StatusError extends Error {
  readonly status: number;
  readonly body: Json;

  constructor(what: string, reply: Reply) {
    super(`${what}: ${reply.status} ${stringAt(reply.body, "message") ?? JSON.stringify(reply.body)}`);
    this.status = reply.status;
    this.body = reply.body;
  }
}

/** JSON, or an object as protobuf. */
type Body = JsonObject | readonly Json[] | Buffer;

function contentType(method: string, body: Body): string {
  if (Buffer.isBuffer(body)) return "application/vnd.kubernetes.protobuf";
  if (method !== "PATCH") return "application/json";
  // A JSON Patch is a list, a merge patch an object; no other body is a list.
  return isObject(body) ? "application/merge-patch+json" : "application/json-patch+json";
}

async function read(response: IncomingMessage): Promise<Json> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  const text = Buffer.concat(chunks).toString("utf8");
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

export class Client {
  readonly #server: URL;
  readonly #ca: string;
  readonly #identities: Identities;
  readonly #agents = new Map<string, Agent>();

  constructor(server: string, ca: string, identities: Identities) {
    this.#server = new URL(server);
    this.#ca = ca;
    this.#identities = identities;
  }

  async #agent(identity: Identity): Promise<Agent> {
    const pair = await this.#identities.certificate(identity);
    // Each identity's certificate is issued once, so the certificate can be the key.
    const agent =
      this.#agents.get(pair.certificate) ??
      new Agent({ keepAlive: true, ca: this.#ca, cert: pair.certificate, key: pair.key });
    this.#agents.set(pair.certificate, agent);
    return agent;
  }

  /** Sends a request and returns the response when it begins, for watches. */
  async open(
    method: string,
    path: string,
    body?: Body,
    identity: Identity = ADMIN,
    options: RequestOptions = {},
  ): Promise<IncomingMessage> {
    const agent = await this.#agent(identity);
    const payload = body === undefined || Buffer.isBuffer(body) ? body : Buffer.from(JSON.stringify(body));
    const headers = {
      accept: "application/json",
      ...(body === undefined || payload === undefined
        ? {}
        : { "content-type": contentType(method, body), "content-length": payload.length }),
      ...(options.headers as Record<string, string> | undefined),
    };
    return new Promise((resolve, reject) => {
      const { hostname, port } = this.#server;
      const sent = request({ ...options, agent, hostname, port, method, path, headers }, resolve);
      sent.once("error", reject);
      sent.end(payload);
    });
  }

  async request(
    method: string,
    path: string,
    body?: Body,
    identity?: Identity,
    options?: RequestOptions,
  ): Promise<Reply> {
    const response = await this.open(method, path, body, identity, options);
    return { status: response.statusCode ?? 0, headers: response.headers, body: await read(response) };
  }

  /** Like `request`, but throws on any response other than success; returns the body. */
  async call(
    method: string,
    path: string,
    body?: Body,
    identity?: Identity,
    options?: RequestOptions,
  ): Promise<Json> {
    const reply = await this.request(method, path, body, identity, options);
    if (reply.status >= 300) throw new StatusError(`${method} ${path}`, reply);
    return reply.body;
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy();
  }
}
