import { hostname } from "node:os";
import { onSignals } from "../../admission/server/signals.ts";
import { EventRecorder } from "../../cluster/events/event-recorder.ts";
import { ServerVersionPoller } from "../../cluster/informers/server-version.ts";
import { LeaderElection } from "../../cluster/leader-election/leader-election.ts";
import type { ServerVersion } from "../../core/kubernetes/versions.ts";
import { loadModules } from "../../core/module/declaration.ts";
import type { Module } from "../../core/module/module.ts";
import type { Operator } from "../../core/module/operator.ts";
import {
  OPERATOR_CONDITION_VARIABLE,
  OperandController,
  OperatorCondition,
} from "../../operator/operand/operand-controller.ts";
import { CallError } from "../exit.ts";
import type { Io } from "../io.ts";
import { createLog, type LogLevel } from "../output/log.ts";
import { type ApiServerOptions, apiServer } from "../source/api-server.ts";

export interface OperatorFlags extends ApiServerOptions {
  readonly logLevel: LogLevel;
  readonly quiet?: boolean;
}

/** An API server that does not answer must not use up the time in which changes are to be handled. */
const REQUEST_SECONDS = 10;

/** Manages the operand of a module until a signal. */
export async function operator(module: string, options: OperatorFlags, io: Io): Promise<void> {
  const { operator: declared } = await operatorOf(module, io);
  const { name, namespace, imageVariable } = declared;
  const image = io.env[imageVariable];
  if (!image) throw new CallError(`set ${imageVariable} to the operand's image`);
  const log = createLog(options.quiet === true ? "error" : options.logLevel);
  const client = await apiServer({ requestTimeout: REQUEST_SECONDS, ...options });
  const identity = io.env["POD_NAME"] ?? `${hostname().toLowerCase()}-${process.pid}`;
  const events = new EventRecorder({ client, instance: identity });
  let serverVersion: ServerVersion | undefined;
  const versions = new ServerVersionPoller({
    client,
    log,
    observed: (version) => {
      serverVersion = version;
    },
  });
  await versions.first;
  const olms = io.env[OPERATOR_CONDITION_VARIABLE];
  const condition = olms && new OperatorCondition({ client, namespace, name: olms, fieldManager: name, log });
  let ended = new AbortController();
  let running: Promise<void> = Promise.resolve();
  const lease = new LeaderElection({
    client,
    namespace,
    name,
    identity,
    onStartedLeading: () => {
      log.info({}, "started leading");
      ended = new AbortController();
      // Its state is from before it led.
      running = new OperandController({
        client,
        operator: declared,
        image,
        log,
        publish: (all) => events.add(all),
        serverVersion: () => serverVersion,
        report: condition ? condition.report : undefined,
        leading: () => lease.leading,
      }).run(ended.signal);
    },
    onStoppedLeading: async () => {
      ended.abort();
      await running;
      log.info({}, "stopped leading");
    },
    onError: (why) => log.warn({ error: why }, "failed to acquire or renew the lease"),
  });
  lease.start();
  log.info({ namespace, image }, `keeping the operand of ${module}`);
  onSignals({
    log,
    drain: async () => {
      versions.stop();
      await lease.stop();
      await events.stop();
      client.close();
    },
  });
}

/** A module and its operator, by the module's name. */
export async function operatorOf(
  name: string,
  { modules }: Io,
): Promise<{ readonly module: Module; readonly operator: Operator }> {
  const loaded = await loadModules(modules);
  const module = loaded.find((one) => one.name === name);
  if (module?.operator !== undefined) return { module, operator: module.operator };
  const names = loaded.filter(({ operator }) => operator !== undefined).map((one) => one.name);
  throw new CallError(`${name} has no operand to keep; these have: ${names.join(", ")}`);
}
