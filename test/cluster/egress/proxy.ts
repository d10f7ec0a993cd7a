// The egress path of the API server: its egress selector sends `CONNECT host:port` to this unix socket for every
// webhook, aggregated API server and node that it dials, and the connection goes to the local port that the routes
// name. The same socket accepts `PUT` and `DELETE` of routes, so that a test in another process can add one.
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect, type Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { Routes } from "./routes.ts";

function splice(client: Duplex, head: Buffer, port: number): void {
  // Otherwise the kernel keeps the second part of a request back for 40 ms, until the first is acknowledged.
  const upstream: Socket = connect({ port, host: "127.0.0.1", noDelay: true });
  const refuse = (): void => {
    client.end("HTTP/1.1 502 Bad Gateway\r\n\r\n");
  };
  upstream.once("error", refuse);
  upstream.once("connect", () => {
    upstream.off("error", refuse);
    client.write("HTTP/1.1 200 Connection established\r\n\r\n");
    upstream.write(head);
    upstream.pipe(client).pipe(upstream);
    // When one side closes or fails, the other is closed.
    upstream.on("error", () => client.destroy());
    upstream.on("close", () => client.destroy());
  });
  client.on("error", () => upstream.destroy());
  client.on("close", () => upstream.destroy());
}

/** `PUT /10.96.3.4:443?port=5000`, `DELETE /10.96.3.4:443`, and `GET /10.96.3.4:443`, which returns the port. */
function edit(routes: Routes, request: IncomingMessage, response: ServerResponse): void {
  const url = new URL(request.url ?? "/", "http://egress");
  const from = decodeURIComponent(url.pathname.slice(1));
  const port = Number(url.searchParams.get("port"));
  if (request.method === "DELETE") routes.delete(from);
  else if (request.method === "GET") response.write(String(routes.resolve(from) ?? ""));
  else if (request.method === "PUT" && Number.isInteger(port) && port > 0) routes.set(from, port);
  else response.statusCode = 400;
  response.end();
}

export class EgressProxy {
  readonly socket: string;
  readonly #server: Server;
  readonly #open = new Set<Duplex>();

  constructor(socket: string, routes: Routes) {
    this.socket = socket;
    this.#server = createServer((request, response) => edit(routes, request, response));
    this.#server.on("connect", (request: IncomingMessage, client: Duplex, head: Buffer) => {
      this.#open.add(client);
      client.once("close", () => this.#open.delete(client));
      // Also a refused connection may be reset: an API server ends it while it stops.
      client.on("error", () => client.destroy());
      const port = routes.resolve(request.url ?? "");
      if (port === undefined) client.end(`HTTP/1.1 502 no route to ${request.url}\r\n\r\n`);
      else splice(client, head, port);
    });
  }

  async listen(): Promise<void> {
    this.#server.listen(this.socket);
    await once(this.#server, "listening");
  }

  async close(): Promise<void> {
    for (const client of this.#open) client.destroy();
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
