import { ListenError } from "../admission/address.ts";
import { readKeyPair } from "../admission/certificate-files.ts";
import { type AdmissionServer, startAdmission } from "../admission/server.ts";
import { onSignals } from "../admission/signals.ts";
import { kindResource } from "../core/kind.ts";
import { countOf } from "../files/report.ts";
import type { FileSource } from "../files/source.ts";
import { CallError, EXIT } from "./exit.ts";
import type { Io } from "./io.ts";
import { createLog, type LogLevel } from "./log.ts";
import { authorityFrom } from "./manifests.ts";
import { openSource } from "./source.ts";
import { terminal } from "./terminal.ts";
import { version } from "./version.ts";

export interface ServeOptions {
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
  const source = await openSource({ ...options, watch: true }, screen);
  screen.note(`usher ${version()} · ${inventory(source)} from ${options.source}`);
  const { bind, port, opsPort } = options;
  const server = await startAdmission({
    source,
    log,
    version: version(),
    bind,
    port,
    opsPort,
    certificate,
    clients,
  }).catch(async (error: unknown) => {
    // What still watches files would keep the process from ending.
    await source.stop();
    if (error instanceof ListenError) throw new CallError(error.message);
    throw error;
  });
  early.stop();
  endOnSignals(server, source, options, log);
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
  source: FileSource,
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
      await source.stop();
    },
    exit: (code) => {
      const again = code > 128 && interrupted !== undefined;
      if (!again || performance.now() - (interrupted ?? 0) > SAME_KEYSTROKE_MS) process.exit(code);
    },
  });
}

/** `4 policies, 6 nodes, 3 namespaces` */
function inventory({ summary, assembly }: FileSource): string {
  const policies = new Set(assembly.modules.flatMap(({ kinds }) => kinds.map(kindResource)));
  const others = Object.entries(summary.objects).filter(([resource]) => !policies.has(resource));
  return [countOf(summary.policies, ""), ...others.map(([resource, n]) => countOf(n, resource))].join(", ");
}
