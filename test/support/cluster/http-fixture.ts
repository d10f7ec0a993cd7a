// A plain HTTP server with the test's responses, and a client with renewable credentials. TLS would change nothing.
import { once } from "node:events";
import { Agent, createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterEach, beforeEach } from "vitest";
import type { Client } from "../../../src/cluster/client/client.ts";
import { createClient, type HttpsClientOptions } from "../../../src/cluster/client/https-client.ts";
import { CONNECTION, type Credentials } from "../../../src/cluster/credentials/credentials.ts";

export interface HttpFixture {
  handler: (request: IncomingMessage, response: ServerResponse, body: string) => void;
  /** The current token, and the one after the next renewal. */
  token: string;
  nextToken: string | undefined;
  renewals: number;
  /** Reading files or running an exec plugin takes time. */
  renewalMs: number;
  /** Makes loading credentials fail. */
  credentialsError: Error | undefined;
  server: Server;
  client: Client;
  readonly credentials: (path?: string) => Credentials;
  /** Replaces the client by one with other options. */
  readonly open: (options?: HttpsClientOptions) => Client;
}

/** A new server and client for each test of the file. */
export function useHttpFixture(): HttpFixture {
  const fixture = {
    credentials: (path = ""): Credentials => {
      const agent = new Agent(CONNECTION);
      return {
        server: `http://127.0.0.1:${portOf(fixture.server)}${path}`,
        namespace: undefined,
        access: async () => {
          if (fixture.credentialsError !== undefined) throw fixture.credentialsError;
          return { agent, headers: { authorization: `Bearer ${fixture.token}` } };
        },
        renew: async () => {
          fixture.renewals += 1;
          await sleep(fixture.renewalMs);
          const changed = fixture.nextToken !== undefined && fixture.nextToken !== fixture.token;
          fixture.token = fixture.nextToken ?? fixture.token;
          return changed;
        },
        close: () => agent.destroy(),
      };
    },
    open: (options?: HttpsClientOptions): Client => {
      fixture.client.close();
      fixture.client = createClient(fixture.credentials(), options);
      return fixture.client;
    },
  } as HttpFixture;

  beforeEach(async () => {
    const initial = { token: "one", nextToken: undefined, renewals: 0, renewalMs: 20 };
    Object.assign(fixture, initial, { credentialsError: undefined });
    fixture.server = createServer(async (request, response) => {
      let body = "";
      for await (const chunk of request) body += String(chunk);
      fixture.handler(request, response, body);
    });
    fixture.server.listen(0, "127.0.0.1");
    await once(fixture.server, "listening");
    fixture.client = createClient(fixture.credentials());
  });

  afterEach(async () => {
    fixture.client.close();
    fixture.server.closeAllConnections();
    fixture.server.close();
    await once(fixture.server, "close");
  });

  return fixture;
}

export function portOf(server: Server): number {
  return (server.address() as AddressInfo).port;
}

export function respondJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
): void {
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(JSON.stringify(body));
}
