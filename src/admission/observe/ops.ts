import { Worker } from "node:worker_threads";
import { factsOf, type Log } from "../../core/log.ts";
import { type Address, addressOf, listenError } from "../http/address.ts";
import type { Health } from "./health.ts";
import { HEARTBEAT_TIMEOUT_MS } from "./ops-pages.ts";

/** How long a scrape waits for the main thread's metrics before it gets the last ones. A usual scrape timeout is 10 s. */
const METRICS_TIMEOUT_MS = 250;

/** Data of the worker at its start. */
export interface OpsWork {
  readonly memory: SharedArrayBuffer;
  readonly bind: string;
  readonly port: number;
  readonly heartbeatTimeoutMs: number;
  readonly metricsTimeoutMs: number;
  /** Whether the main thread reports decisions. */
  readonly decisions: boolean;
}

export type FromOps =
  | { readonly listening: number }
  | { readonly failed: string }
  | { readonly wants: "metrics" }
  | { readonly wants: "decisions"; readonly after: number };

export type ToOps = { readonly metrics: string } | { readonly after: number; readonly decisions: string };

export interface OpsOptions {
  readonly health: Health;
  readonly bind: string;
  readonly port: number;
  /** All metrics of the main thread, as text. */
  readonly metrics: () => Promise<string>;
  readonly log: Log;
  readonly heartbeatTimeoutMs?: number | undefined;
  /** The decisions after a number, as JSON: reported at `/decisions`, to this machine alone. @default not reported */
  readonly decisions?: ((after: number) => string) | undefined;
}

export interface Ops {
  readonly address: Address;
  readonly stop: () => Promise<void>;
}

/** From a clone the worker is a source file beside this one, in the package a bundle beside the bundle. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "./ops-worker.ts" : "./ops-worker.mjs", import.meta.url);
}

/** Starts the thread that serves health and metrics. Resolves once it listens. */
export async function openOps(options: OpsOptions): Promise<Ops> {
  const { health, bind, port, log } = options;
  const work: OpsWork = {
    memory: health.memory,
    bind,
    port,
    heartbeatTimeoutMs: options.heartbeatTimeoutMs ?? HEARTBEAT_TIMEOUT_MS,
    metricsTimeoutMs: METRICS_TIMEOUT_MS,
    decisions: options.decisions !== undefined,
  };
  // Flags of the main thread (a debugger, a test runner's hooks) do not apply to this one.
  const worker = new Worker(workerUrl(), { workerData: work, execArgv: [], name: "usher-ops" });
  let stopping = false;
  const { promise, resolve, reject } = Promise.withResolvers<number>();

  const sendMetrics = async () => {
    const metrics = await options.metrics();
    worker.postMessage({ metrics } satisfies ToOps);
  };
  worker.on("message", (message: FromOps) => {
    if ("listening" in message) resolve(message.listening);
    else if ("failed" in message) reject(listenError(message.failed, bind, port, "--ops-port"));
    else if (message.wants === "decisions") {
      const { after } = message;
      worker.postMessage({ after, decisions: options.decisions?.(after) ?? "" } satisfies ToOps);
    } else sendMetrics().catch((error: unknown) => log.error(factsOf(error), "collecting metrics failed"));
  });
  // Without this thread probes fail and the kubelet restarts the container: log the reason.
  worker.on("error", (error) => {
    reject(error);
    log.error(factsOf(error), "ops server thread failed");
  });
  worker.on("exit", (code) => {
    reject(new Error(`ops server thread exited with code ${code}`));
    if (!stopping) log.error({ code }, "ops server thread exited");
  });

  const stop = async () => {
    stopping = true;
    await worker.terminate();
  };
  try {
    return { address: addressOf("http", bind, await promise), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
