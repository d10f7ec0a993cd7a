import { once } from "node:events";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { hostname } from "node:os";
import { type Address, addressOf, listenError } from "../../admission/http/address.ts";
import { opsServer } from "../../admission/observe/ops-server.ts";
import { onSignals } from "../../admission/server/signals.ts";
import { EventRecorder } from "../../cluster/events/event-recorder.ts";
import { DEFAULT_FALLBACK_SECONDS, DEFAULT_WATCHDOG } from "../../core/installation/installation.ts";
import { Watchdog, watchdogPage } from "../../operator/watchdog/watchdog.ts";
import { CallError } from "../exit.ts";
import type { Io } from "../io.ts";
import { createLog, type LogLevel } from "../output/log.ts";
import { type ApiServerOptions, apiServer } from "../source/api-server.ts";
import { assembleFor } from "../source/source.ts";

export interface WatchdogFlags extends ApiServerOptions {
  readonly opsPort: number;
  readonly bind: string;
  readonly config?: string;
  readonly featureGates?: string;
  readonly logLevel: LogLevel;
  readonly quiet?: boolean;
}

/** An API server that does not answer must not use up the time in which the absence of replicas is observed. */
const REQUEST_SECONDS = 10;

/** Watches the replicas until a signal. */
export async function watchdog(options: WatchdogFlags, io: Io): Promise<void> {
  const { namespace, watchdog: settings = DEFAULT_WATCHDOG } = (await assembleFor(options, io)).installation;
  if (!settings.enabled)
    throw new CallError(
      "spec.watchdog.enabled is false: remove the Deployment usher-watchdog, or set it to true",
    );
  const log = createLog(options.quiet === true ? "error" : options.logLevel);
  const client = await apiServer({ requestTimeout: REQUEST_SECONDS, ...options });
  const instance = process.env["POD_NAME"] ?? `${hostname().toLowerCase()}-${process.pid}`;
  const events = new EventRecorder({ client, instance });
  const ended = new AbortController();
  const watching = new Watchdog({
    client,
    namespace,
    openAfterMs: settings.openAfterSeconds * 1_000,
    fallbackAfterMs: (settings.fallbackAfterSeconds ?? DEFAULT_FALLBACK_SECONDS) * 1_000,
    log,
    publish: (all) => events.add(all),
  });
  const ops = await openOps(watching, options);
  const running = watching.run(ended.signal);
  log.info(
    { namespace, openAfterSeconds: settings.openAfterSeconds, ops: ops.address.url },
    "watching the replicas",
  );
  onSignals({
    log,
    drain: async () => {
      ended.abort();
      ops.server.close();
      await running;
      await events.stop();
      client.close();
    },
  });
}

/** In this thread: it only waits for the API server, so nothing would delay an answer. */
async function openOps(
  watching: Watchdog,
  { bind, opsPort }: WatchdogFlags,
): Promise<{ readonly server: Server; readonly address: Address }> {
  const server = opsServer((path) => watchdogPage(path, watching.state));
  server.listen({ host: bind, port: opsPort });
  await once(server, "listening").catch((error: NodeJS.ErrnoException) => {
    throw new CallError(listenError(error.code ?? error.message, bind, opsPort, "--ops-port").message);
  });
  return { server, address: addressOf("http", bind, (server.address() as AddressInfo).port) };
}
