import { hostname } from "node:os";
import { onSignals } from "../../admission/server/signals.ts";
import { EventRecorder } from "../../cluster/events/event-recorder.ts";
import { DEFAULT_WATCHDOG } from "../../core/module/installation.ts";
import { Watchdog } from "../../operator/watchdog/watchdog.ts";
import { CallError } from "../exit.ts";
import type { Io } from "../io.ts";
import { createLog, type LogLevel } from "../output/log.ts";
import { type ApiServerOptions, apiServer } from "../source/api-server.ts";
import { assembleFor } from "../source/source.ts";

export interface WatchdogOptions extends ApiServerOptions {
  readonly config?: string;
  readonly featureGates?: string;
  readonly logLevel: LogLevel;
  readonly quiet?: boolean;
}

/** An API server that does not answer must not use up the time in which the absence of replicas is observed. */
const REQUEST_SECONDS = 10;

/** Watches the replicas until a signal. */
export async function watchdog(options: WatchdogOptions, io: Io): Promise<void> {
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
  const running = new Watchdog({
    client,
    namespace,
    openAfterMs: settings.openAfterSeconds * 1_000,
    log,
    publish: (all) => events.add(all),
  }).run(ended.signal);
  log.info({ namespace, openAfterSeconds: settings.openAfterSeconds }, "watching the replicas");
  onSignals({
    log,
    drain: async () => {
      ended.abort();
      await running;
      await events.stop();
      client.close();
    },
  });
}
