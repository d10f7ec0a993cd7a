import { type AdmissionServer, startAdmission } from "../../admission/admission-server.ts";
import { ListenError } from "../../admission/http/address.ts";
import { onSignals } from "../../admission/server/signals.ts";
import { type CertificateFiles, readKeyPair } from "../../admission/tls/certificate-files.ts";
import type { ClientCheck } from "../../admission/tls/client-certificate.ts";
import type { Log } from "../../core/log.ts";
import { CallError, EXIT } from "../exit.ts";
import { authorityFrom } from "../install/manifests.ts";
import type { Io } from "../io.ts";
import { createLog, type LogLevel } from "../output/log.ts";
import { type Terminal, terminal } from "../output/terminal.ts";
import { isLive, type OpenOptions } from "../source/open.ts";
import { assembleFor } from "../source/source.ts";
import { version } from "../version.ts";
import { openServed, type Served } from "./serve-source.ts";

/** Listening addresses, and the drain time. */
export interface ListenOptions {
  readonly port: number;
  readonly opsPort: number;
  readonly bind: string;
  readonly drainSeconds: number;
  readonly output: "text" | "json";
}

export interface ServeOptions extends OpenOptions, ListenOptions {
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly clientCa?: string;
  readonly logLevel: LogLevel;
  readonly quiet?: boolean;
}

/** Serves until a signal; resolves when ready. */
export function serve(options: ServeOptions, io: Io): Promise<void> {
  return untilReady(() => begin(options, io));
}

/** Before the server is ready there is nothing to drain: signals stop the process immediately. */
export async function untilReady(start: () => Promise<void>): Promise<void> {
  const early = stopOnEarlySignals();
  try {
    await start();
  } finally {
    early.stop();
  }
}

async function begin(options: ServeOptions, io: Io): Promise<void> {
  checkCall(options);
  const certificate = await certificateFrom(options);
  const screen = terminal(io, options);
  const log = createLog(options.quiet === true ? "error" : options.logLevel);
  const authority = options.clientCa && (await authorityFrom(options.clientCa, "--client-ca"));
  const live = (await isVisitor(options)) ? { note: screen.note, forbidden: "ask" as const } : undefined;
  const assembly = await assembleFor(options, io, { live });
  const ca = authority ?? assembly.installation.clientCa;
  const clients = ca === undefined ? undefined : { ca };
  const opened = await openServed(options, assembly, screen, log, certificate);
  await serveOpened(opened, options, { screen, log, certificate, clients });
}

/** Whether this process serves beside an installation, whose configuration then applies: a replica has its own. */
async function isVisitor(options: ServeOptions): Promise<boolean> {
  if (!isLive(options)) return false;
  const { isOwnCluster } = await import("../source/api-server.ts");
  return options.source !== undefined || !(options.operate ?? isOwnCluster(options));
}

export interface Serving {
  readonly screen: Terminal;
  readonly log: Log;
  /** From the flags; the source may bring its own. */
  readonly certificate: CertificateFiles | undefined;
  readonly clients?: ClientCheck | undefined;
}

/**
 * Returns memory to the operating system, if usher was started with `--expose-gc`. Reading makes V8's heap several
 * times as large as the retained data, and an idle process keeps it for minutes. It blocks for some hundredth of a
 * second: right only before serving.
 */
function releaseMemory(): void {
  // Node creates an object for each tick, and V8 forgets their shape if none is alive now: each tick would take five
  // times as long for the rest of the process's life.
  process.nextTick(() => undefined);
  void globalThis.gc?.({ type: "major", execution: "sync", flavor: "last-resort" });
}

/** Serves from the opened source until a signal; resolves when ready. */
export async function serveOpened(
  opened: Served,
  options: ListenOptions,
  { screen, log, certificate, clients }: Serving,
): Promise<void> {
  screen.note(`usher ${version()} · ${opened.inventory} from ${opened.from}`);
  releaseMemory();
  const { bind, port, opsPort } = options;
  const server = await startAdmission({
    source: opened.source,
    log,
    version: version(),
    bind,
    port,
    opsPort,
    certificate: opened.certificate ?? certificate,
    trusts: opened.trusts,
    clients,
    aggregated: opened.aggregated,
    effects: opened.effects,
    reportsDecisions: opened.reportsDecisions,
    acceptsToken: opened.acceptsToken,
    callFailed: opened.callFailed,
    tracing: opened.source.assembly.installation.tracing,
    instance: process.env["POD_NAME"],
    controllerStats: opened.controllerStats,
  }).catch(async (error: unknown) => {
    // Open watches would keep the process running.
    await opened.stop();
    if (error instanceof ListenError) throw new CallError(error.message);
    throw error;
  });
  drainOnSignals(server, opened.stop, options, log);
  opened.start(server.count);
  const seconds = process.uptime();
  const { webhookAddress, opsAddress, ca } = server;
  screen.out(
    options.output === "json"
      ? JSON.stringify({
          ready: true,
          webhook: webhookAddress.url,
          ops: opsAddress.url,
          seconds: Number(seconds.toFixed(3)),
          ...(ca === undefined ? {} : { ca }),
        })
      : `ready in ${seconds.toFixed(1)} s · webhook ${webhookAddress.url} · health and metrics ${opsAddress.url}`,
  );
}

/** Checks flags before anything is read. */
function checkCall({ source, cluster, kubeconfig, context, operate }: ServeOptions): void {
  if (source === undefined) return;
  const which = kubeconfig !== undefined ? "--kubeconfig" : context !== undefined ? "--context" : undefined;
  if (cluster !== true && which !== undefined)
    throw new CallError(
      `${which} can't be combined with --source alone: add --cluster to read policies from files and everything else from the cluster`,
    );
  if (operate === true) throw new CallError("--operate and --source are mutually exclusive");
}

async function certificateFrom({ tlsCert, tlsKey }: Pick<ServeOptions, "tlsCert" | "tlsKey">) {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new CallError("--tls-cert and --tls-key must be specified together");
  }
  return checkedFiles({ certFile: tlsCert, keyFile: tlsKey });
}

/** Read before anything starts, so that an invalid file is a usage error. */
export async function checkedFiles(files: CertificateFiles): Promise<CertificateFiles> {
  await readKeyPair(files).catch((error: unknown) => {
    throw new CallError(error instanceof Error ? error.message : String(error));
  });
  return files;
}

function stopOnEarlySignals(): { readonly stop: () => void } {
  const end = () => process.exit(EXIT.fine);
  const signals = ["SIGTERM", "SIGINT"] as const;
  for (const signal of signals) process.on(signal, end);
  return {
    stop: () => {
      for (const signal of signals) process.removeListener(signal, end);
    },
  };
}

/** Ctrl-C reaches every process of the terminal, and npm or a wrapper script forwards it again within this time. */
const SAME_KEYSTROKE_MS = 500;

function drainOnSignals(
  server: AdmissionServer,
  stop: () => Promise<void>,
  { drainSeconds }: ListenOptions,
  log: Parameters<typeof onSignals>[0]["log"],
): void {
  let interrupted: number | undefined;
  // Ctrl-C does not wait for load balancers to notice.
  process.prependListener("SIGINT", () => {
    interrupted ??= performance.now();
  });
  onSignals({
    log,
    drain: async () => {
      await server.drain({ serveOnMs: interrupted === undefined ? drainSeconds * 1_000 : 0 });
      await stop();
    },
    exit: (code) => {
      const again = code > 128 && interrupted !== undefined;
      if (!again || performance.now() - (interrupted ?? 0) > SAME_KEYSTROKE_MS) process.exit(code);
    },
  });
}
