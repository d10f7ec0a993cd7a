import { ListenError } from "../admission/address.ts";
import type { LivePair } from "../admission/certificate.ts";
import { readKeyPair } from "../admission/certificate-files.ts";
import { type AdmissionServer, startAdmission } from "../admission/server.ts";
import { onSignals } from "../admission/signals.ts";
import type { Assembly } from "../core/assembly.ts";
import type { Effects } from "../core/effects.ts";
import { kindResource } from "../core/kind.ts";
import { resourceName } from "../core/request.ts";
import type { Source } from "../core/source.ts";
import { countOf } from "../files/report.ts";
import { readConfiguration } from "./configuration.ts";
import { CallError, EXIT } from "./exit.ts";
import type { Io } from "./io.ts";
import type { LiveOptions } from "./live.ts";
import { createLog, type LogLevel } from "./log.ts";
import { authorityFrom } from "./manifests.ts";
import { assembleFor, openSource } from "./source.ts";
import { type Terminal, terminal } from "./terminal.ts";
import { version } from "./version.ts";

export interface ServeOptions extends LiveOptions {
  /** A directory of files in place of a cluster. */
  readonly source?: string;
  readonly port: number;
  readonly opsPort: number;
  readonly bind: string;
  readonly tlsCert?: string;
  readonly tlsKey?: string;
  readonly clientCa?: string;
  readonly drainSeconds: number;
  readonly logLevel: LogLevel;
  readonly output: "text" | "json";
  readonly quiet?: boolean;
  readonly config?: string;
  readonly featureGates?: string;
}

/** Serves until a signal ends it; done when it is ready. */
export async function serve(options: ServeOptions, io: Io): Promise<void> {
  const early = endEarly();
  const certificate = await certificateFrom(options);
  const clients =
    options.clientCa === undefined ? undefined : { ca: await authorityFrom(options.clientCa, "--client-ca") };
  const screen = terminal(io, options);
  const log = createLog(options.quiet === true ? "error" : options.logLevel);
  const opened =
    options.source === undefined
      ? await openTheCluster(options, log, certificate === undefined)
      : await openTheFiles(options, screen);
  screen.note(`usher ${version()} · ${opened.inventory} from ${opened.from}`);
  const { bind, port, opsPort } = options;
  const server = await startAdmission({
    source: opened.source,
    log,
    version: version(),
    bind,
    port,
    opsPort,
    certificate: certificate ?? opened.certificate,
    clients,
    effects: opened.effects,
  }).catch(async (error: unknown) => {
    // What still watches would keep the process from ending.
    await opened.stop();
    if (error instanceof ListenError) throw new CallError(error.message);
    throw error;
  });
  early.stop();
  endOnSignals(server, opened.stop, options, log);
  opened.start();
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

/** Looked at before anything is started, so that a mistake in the call is told as one. */
async function certificateFrom({ tlsCert, tlsKey }: ServeOptions) {
  if (tlsCert === undefined && tlsKey === undefined) return undefined;
  if (tlsCert === undefined || tlsKey === undefined) {
    throw new CallError("--tls-cert and --tls-key go together: a certificate is of no use without its key");
  }
  const files = { certFile: tlsCert, keyFile: tlsKey };
  await readKeyPair(files).catch((error: unknown) => {
    throw new CallError(error instanceof Error ? error.message : String(error));
  });
  return files;
}

/** Before anybody is served there is nothing to finish: the same signals end it at once, and as well. */
function endEarly(): { readonly stop: () => void } {
  const end = () => process.exit(EXIT.fine);
  const signals = ["SIGTERM", "SIGINT"] as const;
  for (const signal of signals) process.on(signal, end);
  return {
    stop: () => {
      for (const signal of signals) process.removeListener(signal, end);
    },
  };
}

/**
 * One Ctrl-C reaches every process of the terminal, and npm or a script around us passes it on again: what comes within this
 * time is still the first one.
 */
const SAME_KEYSTROKE_MS = 500;

function endOnSignals(
  server: AdmissionServer,
  stop: () => Promise<void>,
  { drainSeconds }: ServeOptions,
  log: Parameters<typeof onSignals>[0]["log"],
): void {
  let interrupted: number | undefined;
  // A person who presses Ctrl-C is not a load balancer that must learn of it first.
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

/** What is served from, and what belongs to it. */
interface Opened {
  readonly source: Source;
  /** `4 policies, 6 nodes, 3 namespaces` */
  readonly inventory: string;
  readonly from: string;
  readonly certificate: LivePair | undefined;
  readonly effects: ((effects: Effects) => void) | undefined;
  readonly start: () => void;
  readonly stop: () => Promise<void>;
}

async function openTheFiles(options: ServeOptions, screen: Terminal): Promise<Opened> {
  const source = await openSource({ ...options, watch: true }, screen);
  return {
    source,
    inventory: inventoryOf(source.assembly, new Map(Object.entries(source.summary.objects))),
    from: options.source ?? "",
    certificate: undefined,
    effects: undefined,
    start: () => undefined,
    stop: source.stop,
  };
}

async function openTheCluster(
  options: ServeOptions,
  log: ReturnType<typeof createLog>,
  ownCertificate: boolean,
): Promise<Opened> {
  const assembly = assembleFor(options, await readConfiguration(options.config));
  // Loaded only here: a cluster of files needs none of it.
  const { openLiveSource } = await import("./live.ts");
  const live = await openLiveSource(options, assembly, log, ownCertificate);
  const reads = assembly.modules.flatMap((module) => [
    ...module.reads.map(resourceName),
    ...module.kinds.map(kindResource),
  ]);
  const counts = new Map(reads.map((resource) => [resource, assembly.view.count(resource)]));
  return { ...live, inventory: inventoryOf(assembly, counts), from: live.server };
}

/** Policies together, the rest by resource. */
function inventoryOf({ modules }: Assembly, counts: ReadonlyMap<string, number>): string {
  const policies = new Set(modules.flatMap(({ kinds }) => kinds.map(kindResource)));
  const total = [...policies].reduce((sum, resource) => sum + (counts.get(resource) ?? 0), 0);
  const others = [...counts].filter(([resource]) => !policies.has(resource));
  return [countOf(total, ""), ...others.map(([resource, n]) => countOf(n, resource))].join(", ");
}
