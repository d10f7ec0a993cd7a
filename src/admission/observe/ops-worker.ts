import type { AddressInfo } from "node:net";
import { parentPort, workerData } from "node:worker_threads";
import { Health } from "./health.ts";
import type { FromOps, OpsWork, ToOps } from "./ops.ts";
import { INDEX, livez, ownMetrics, type Page, readyz, UNKNOWN_PAGE } from "./ops-pages.ts";
import { opsServer } from "./ops-server.ts";

/** Health and metrics in a separate thread: probes must be answered correctly while the main thread is stuck. */

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

/** Readers that wait for the decisions after a number. */
const readers = new Map<number, PromiseWithResolvers<Page>>();

/** Only the user of this machine may see names of users and objects, and no site in the user's browser. */
function decisionsAfter(query: string, host: string): Page | Promise<Page> {
  if (!work.decisions || !/^(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?$/.test(host)) return UNKNOWN_PAGE;
  const after = Number(new URLSearchParams(query).get("after") ?? 0) || 0;
  const waiting = readers.get(after) ?? Promise.withResolvers<Page>();
  if (!readers.has(after)) {
    readers.set(after, waiting);
    post({ wants: "decisions", after });
  }
  return waiting.promise;
}

function pageAt(path: string, query: string, host: string): Page | Promise<Page> {
  switch (path) {
    case "/decisions":
      return decisionsAfter(query, host);
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

const server = opsServer(pageAt);
server.on("error", (error: NodeJS.ErrnoException) => post({ failed: error.code ?? error.message }));
server.listen({ host: work.bind, port: work.port }, () =>
  post({ listening: (server.address() as AddressInfo).port }),
);

port?.on("message", (message: ToOps) => {
  if ("decisions" in message) {
    readers.get(message.after)?.resolve({ status: 200, body: message.decisions });
    readers.delete(message.after);
    return;
  }
  snapshot = { text: message.metrics, at: performance.now() };
  asked?.resolve();
  asked = undefined;
});
