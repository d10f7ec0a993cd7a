import { readFile } from "node:fs/promises";
import { ListenError } from "../admission/address.ts";
import { startAdmission } from "../admission/server.ts";
import { onSignals } from "../admission/signals.ts";
import { kindResource } from "../core/kind.ts";
import type { FileSource } from "../files/source.ts";
import { CallError } from "./exit.ts";
import { createLog, type LogLevel } from "./log.ts";
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
  readonly quiet: boolean;
  readonly config?: string;
  readonly featureGates?: string;
}

/** Serves until a signal ends it. */
export async function serve(options: ServeOptions): Promise<void> {
  const { tlsCert, tlsKey } = options;
  if ((tlsCert === undefined) !== (tlsKey === undefined)) {
    throw new CallError("--tls-cert and --tls-key go together: a certificate is of no use without its key");
  }
  const screen = terminal(options);
  const log = createLog(options.quiet ? "error" : options.logLevel);
  const source = await openSource({ ...options, watch: true }, screen);
  screen.note(`usher ${version()} · ${inventory(source)} from ${options.source}`);
  const server = await startAdmission({
    source,
    log,
    version: version(),
    bind: options.bind,
    port: options.port,
    opsPort: options.opsPort,
    certificate:
      tlsCert === undefined || tlsKey === undefined ? undefined : { certFile: tlsCert, keyFile: tlsKey },
    clients: options.clientCa === undefined ? undefined : { ca: await pem(options.clientCa) },
  }).catch((error: unknown) => {
    if (error instanceof ListenError) throw new CallError(error.message);
    throw error;
  });
  let interrupted = false;
  // A person who presses Ctrl-C is not a load balancer that must learn of it first.
  process.prependListener("SIGINT", () => (interrupted = true));
  onSignals({
    log,
    drain: async () => {
      await server.drain({ serveOnMs: interrupted ? 0 : options.drainSeconds * 1_000 });
      await source.stop();
    },
  });
  const webhook = server.webhookAddress.url;
  const ops = server.opsAddress.url;
  const seconds = process.uptime();
  screen.out(
    options.output === "json"
      ? JSON.stringify({
          ready: true,
          webhook,
          ops,
          seconds: Number(seconds.toFixed(3)),
          ...(server.ca === undefined ? {} : { ca: server.ca }),
        })
      : `ready in ${seconds.toFixed(1)} s · webhook ${webhook} · health and metrics ${ops}`,
  );
}

/** `4 policies, 6 nodes, 3 namespaces` */
function inventory({ summary, assembly }: FileSource): string {
  const policyResources = new Set(assembly.modules.flatMap(({ kinds }) => kinds.map(kindResource)));
  const parts = [counted(summary.policies, "policy", "policies")];
  for (const [resource, count] of Object.entries(summary.objects)) {
    if (policyResources.has(resource)) continue;
    const plural = resource.split(".")[0] ?? resource;
    parts.push(counted(count, plural.replace(/s$/, ""), plural));
  }
  return parts.join(", ");
}

function counted(count: number, one: string, many: string): string {
  return `${count} ${count === 1 ? one : many}`;
}

async function pem(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error) {
    throw new CallError(`${file}: can't be read: ${error instanceof Error ? error.message : String(error)}`);
  }
}
