import type { CertificateFiles } from "../../admission/tls/certificate-files.ts";
import { openCluster } from "../../cluster/source/cluster-source.ts";
import type { Count } from "../../core/decision/decision.ts";
import type { Log } from "../../core/log.ts";
import { Assembly } from "../../core/module/assembly.ts";
import type { Operand } from "../../core/module/operand.ts";
import type { Change } from "../../core/view/view.ts";
import { countOf } from "../../files/source/report.ts";
import { openFrontProxy } from "../../operator/aggregation/front-proxy-settings.ts";
import { openMounted } from "../../operator/certificates/mounted-certificates.ts";
import { PathSecret } from "../../operator/certificates/path-secret.ts";
import { PublishedWebhooks, webhooksPath } from "../../operator/certificates/published-webhooks.ts";
import { Leader } from "../../operator/controller/leader.ts";
import { configure } from "../configuration/configuration.ts";
import type { Io } from "../io.ts";
import { createLog, type LogLevel } from "../output/log.ts";
import { terminal } from "../output/terminal.ts";
import { checkedFiles, type ListenOptions, serveOpened, untilReady } from "../serve/serve.ts";
import type { Served } from "../serve/serve-source.ts";
import { type ApiServerOptions, apiServer, clusterError } from "../source/api-server.ts";
import { identity } from "../source/live.ts";
import { followConfiguration } from "./configuration-file.ts";

export interface OperandOptions extends ListenOptions, ApiServerOptions {
  readonly configuration: string;
  readonly tlsCert: string;
  readonly tlsKey: string;
  readonly logLevel: LogLevel;
}

/** Serves an operand until a signal; resolves when ready. */
export function serveOperand(operand: Operand, options: OperandOptions, io: Io): Promise<void> {
  return untilReady(async () => {
    const log = createLog(options.logLevel);
    const module = await operand.load();
    const { installation, gates } = configure([module], { namespace: operand.namespace }, undefined);
    const assembly = new Assembly([module], installation, gates);
    const [kind] = module.kinds;
    if (kind === undefined) throw new Error(`${operand.name} has no kind of configuration`);
    const use = (change: Change) => void assembly.apply([change]);
    const followed = await followConfiguration({ file: options.configuration, kind, use, log });
    const certificate = await checkedFiles({ certFile: options.tlsCert, keyFile: options.tlsKey });
    const isAggregated = io.env[operand.aggregated.variable] === "Aggregated";
    const opened = await openOperand(operand, options, { assembly, log, isAggregated, certificate });
    const stop = async () => {
      followed.stop();
      await opened.stop();
    };
    await serveOpened({ ...opened, stop }, options, { screen: terminal(io, {}), log, certificate });
  });
}

interface Opening {
  readonly assembly: Assembly;
  readonly log: Log;
  readonly isAggregated: boolean;
  readonly certificate: CertificateFiles;
}

/** The cluster for all but the file, and the part in leader election. Nothing is installed or registered. */
async function openOperand(
  operand: Operand,
  options: OperandOptions,
  { assembly, log, isAggregated, certificate: files }: Opening,
): Promise<Served> {
  const { namespace, service, name, pathsSecret: secret, pathsKey: key, aggregated: api } = operand;
  const client = await apiServer(options);
  const source = openCluster({ client, assembly, log });
  const paths = new PathSecret({ client, namespace, secret, key, log });
  let count: (counts: readonly Count[]) => void = () => undefined;
  const leader = new Leader({
    client,
    source,
    lease: name,
    identity: identity().identity,
    log,
    publish: (_events, counts) => count(counts),
  });
  const ended = new AbortController();
  const objects = [
    webhooksPath("validatingwebhookconfigurations", operand.webhook),
    ...(isAggregated ? [`/apis/apiregistration.k8s.io/v1/apiservices/${api.version}.${api.group}`] : []),
  ];
  const published = new PublishedWebhooks({ client, namespace, service, objects, log });
  const { signal } = ended;
  const certificate = await openMounted({
    files,
    published,
    namespace,
    service,
    writer: "injector",
    log,
    signal,
  });
  const opening = isAggregated ? openFrontProxy(client, log, signal) : undefined;
  const stop = async () => {
    ended.abort();
    await opening?.then((settings) => settings.stop()).catch(() => undefined);
    paths.stop();
    published.stop();
    certificate.stop();
    await leader.stop();
    await source.stop();
    client.close();
  };
  try {
    await Promise.all([source.cache.waitForSync(), paths.start(), published.start(), opening]);
  } catch (error) {
    await stop();
    throw clusterError(error, client);
  }
  return {
    source,
    inventory: countOf(assembly.view.count("namespaces"), "namespaces"),
    from: `${options.configuration} and ${client.server}`,
    certificate,
    trusts: (chain) => published.trusts(chain),
    effects: undefined,
    acceptsToken: paths.acceptsToken,
    aggregated: opening && { api, frontProxy: (await opening).frontProxy },
    controllerStats: () => ({ ...leader.controller.stats, leading: leader.leading }),
    start: (counter) => {
      count = counter;
      leader.start();
    },
    stop,
  };
}
