import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import { Connections } from "../server/connections.ts";
import { Health } from "./health.ts";
import type { FromOps, OpsWork, ToOps } from "./ops.ts";
import { INDEX, livez, ownMetrics, type Page, READ_ONLY, readyz, UNKNOWN_PAGE } from "./ops-pages.ts";

/** Health and metrics in a thread of their own: probes must be answered, with the truth, while the main thread is stuck. */

/** A probe sends one line. */
const RECEIVE_MS = 5_000;

/** A connection without traffic. Node waits twice as long where a response is not read: ten seconds, as long as a usual scrape may take. */
const SILENT_MS = 5_000;

/** A kubelet has three probes and some monitoring systems scrape, each with a connection or two. A connection takes some 10 KB. */
const CONNECTIONS = 100;

const work = workerData as OpsWork;
const health = new Health(work.memory);
const port = parentPort;

let snapshot = { text: "", at: performance.now() };
let asked: PromiseWithResolvers<void> | undefined;

const post = (message: FromOps) => port?.postMessage(message);

/** The main thread's metrics: current ones if it can collect them in time, else the last. */
async function metrics(): Promise<Page> {
  if (asked === undefined) {
    asked = Promise.withResolvers<void>();
    post({ wants: "metrics" });
  }
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<"late">((resolve) => {
    timer = setTimeout(() => resolve("late"), work.metricsTimeoutMs);
  });
  const outcome = await Promise.race([asked.promise, late]);
  clearTimeout(timer);
  const age = outcome === "late" ? performance.now() - snapshot.at : 0;
  return { status: 200, body: snapshot.text + ownMetrics(health, work.heartbeatTimeoutMs, age) };
}

function pageAt(path: string, query: string): Page | Promise<Page> {
  switch (path) {
    case "/livez":
    case "/healthz":
      return livez(health, work.heartbeatTimeoutMs);
    case "/readyz":
      return readyz(health, work.heartbeatTimeoutMs, /(^|&)verbose(=|&|$)/.test(query));
    case "/metrics":
      return metrics();
    case "/":
      return INDEX;
    default:
      return UNKNOWN_PAGE;
  }
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

/** Prometheus' content type; the version is that of the format. */
const METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8";

const server = createServer(
  { headersTimeout: RECEIVE_MS, requestTimeout: RECEIVE_MS, connectionsCheckingInterval: 1_000 },
  (request, response) => {
    const [path = "/", query = ""] = (request.url ?? "/").split("?", 2);
    if (request.method !== "GET" && request.method !== "HEAD") {
      response.shouldKeepAlive = false;
      send(response, READ_ONLY);
      return;
    }
    const page = pageAt(path, query);
    if (page instanceof Promise) void page.then((ready) => send(response, ready, METRICS_TYPE));
    else send(response, page);
  },
);

server.timeout = SILENT_MS;
new Connections(server, CONNECTIONS);

server.on("error", (error: NodeJS.ErrnoException) => post({ failed: error.code ?? error.message }));
server.listen({ host: work.bind, port: work.port }, () =>
  post({ listening: (server.address() as AddressInfo).port }),
);

port?.on("message", (message: ToOps) => {
  snapshot = { text: message.metrics, at: performance.now() };
  asked?.resolve();
  asked = undefined;
});
