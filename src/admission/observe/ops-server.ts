import { createServer, type Server, type ServerResponse } from "node:http";
import { Connections } from "../http/connections.ts";
import { type Page, READ_ONLY } from "./ops-pages.ts";

/** A probe sends one line. */
const RECEIVE_MS = 5_000;

/** A connection without traffic. Node waits twice as long if a response is not read: ten seconds, the usual timeout of a scrape. */
const SILENT_MS = 5_000;

/** A kubelet has three probes and some monitoring systems scrape, each with a connection or two. A connection takes some 10 KB. */
const CONNECTIONS = 100;

/** Prometheus' content type; the version is that of the format. */
const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

/** A server of health and metrics, which does not listen yet. */
export function opsServer(
  pageAt: (path: string, query: string, host: string) => Page | Promise<Page>,
): Server {
  const server = createServer(
    { headersTimeout: RECEIVE_MS, requestTimeout: RECEIVE_MS, connectionsCheckingInterval: 1_000 },
    (request, response) => {
      const [path = "/", query = ""] = (request.url ?? "/").split("?", 2);
      if (request.method !== "GET" && request.method !== "HEAD") {
        response.shouldKeepAlive = false;
        send(response, READ_ONLY);
        return;
      }
      const page = pageAt(path, query, request.headers.host ?? "");
      const type =
        path === "/metrics" ? METRICS_TYPE : path === "/decisions" ? "application/json" : undefined;
      if (page instanceof Promise) void page.then((ready) => send(response, ready, type));
      else send(response, page, type);
    },
  );
  server.timeout = SILENT_MS;
  new Connections(server, CONNECTIONS);
  return server;
}

function send(response: ServerResponse, { status, body }: Page, type = "text/plain; charset=utf-8"): void {
  if (response.destroyed) return;
  response.writeHead(status, {
    "Content-Type": type,
    "Content-Length": Buffer.byteLength(body),
    "Cache-Control": "no-store",
    ...(status === 405 ? { Allow: "GET, HEAD" } : {}),
  });
  response.end(body);
}
