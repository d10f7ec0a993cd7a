import { Worker } from "node:worker_threads";
import { factsOf, type Log } from "../../core/log.ts";
import { type Address, addressOf, listenError } from "../server/address.ts";
import type { Health } from "./health.ts";
import { SILENCE_LIMIT_MS } from "./ops-pages.ts";

/** How long a scrape waits for the main thread's figures before it gets the last ones. A tenth of a usual scrape timeout is 1 s. */
const METRICS_TIMEOUT_MS = 250;

/** What the worker is given at its start. */
export interface OpsWork {
  readonly memory: SharedArrayBuffer;
  readonly bind: string;
  readonly port: number;
  readonly silenceMs: number;
  readonly timeoutMs: number;
}

export type FromOps =
  | { readonly listening: number }
  | { readonly failed: string }
  | { readonly wants: "metrics" };

export interface ToOps {
  readonly metrics: string;
}

export interface OpsOptions {
  readonly pulse: Health;
  readonly bind: string;
  readonly port: number;
  /** The text of all metrics of the main thread. */
  readonly metrics: () => Promise<string>;
  readonly log: Log;
  readonly silenceMs?: number | undefined;
}

export interface Ops {
  readonly address: Address;
  readonly stop: () => Promise<void>;
}

/** From a clone the worker is a source file beside this one, in the package a bundle beside the bundle. */
function workerUrl(): URL {
  return new URL(import.meta.url.endsWith(".ts") ? "./ops-worker.ts" : "./ops-worker.mjs", import.meta.url);
}

/** Starts the thread that answers for health and metrics. Resolves once it listens. */
export async function openOps(options: OpsOptions): Promise<Ops> {
  const { pulse, bind, port, log } = options;
  const work: OpsWork = {
    memory: pulse.memory,
    bind,
    port,
    silenceMs: options.silenceMs ?? SILENCE_LIMIT_MS,
    timeoutMs: METRICS_TIMEOUT_MS,
  };
  // What the main thread was started with (a debugger, a test runner's hooks) is not for this one.
  const worker = new Worker(workerUrl(), { workerData: work, execArgv: [], name: "usher-ops" });
  let stopping = false;
  const { promise, resolve, reject } = Promise.withResolvers<number>();

  const giveMetrics = async () => {
    const metrics = await options.metrics();
    worker.postMessage({ metrics } satisfies ToOps);
  };
  worker.on("message", (message: FromOps) => {
    if ("listening" in message) resolve(message.listening);
    else if ("failed" in message) reject(listenError(message.failed, bind, port, "--ops-port"));
    else giveMetrics().catch((error: unknown) => log.error(factsOf(error), "metrics could not be gathered"));
  });
  // Without this thread nobody can tell that we live, so the kubelet will start us anew: say why.
  worker.on("error", (error) => {
    reject(error);
    log.error(factsOf(error), "the thread for health and metrics broke");
  });
  worker.on("exit", (code) => {
    reject(new Error(`the thread for health and metrics ended with code ${code}`));
    if (!stopping) log.error({ code }, "the thread for health and metrics ended");
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
