import { Agent as HttpAgent } from "node:http";
import { Agent, type RequestOptions } from "node:https";
import { isDeepStrictEqual } from "node:util";
import type { KubeConfig } from "@kubernetes/client-node";
import { type Access, CONNECTION, type Credentials, retire } from "./credentials.ts";

/** Exec plugins say when a credential ends, and files may be replaced: both are looked at again this often, and at once on a 401. */
const LOOK_AGAIN_MS = 10_000;

export interface KubeconfigOptions {
  /** @default `KUBECONFIG`, else `~/.kube/config` */
  readonly file?: string;
  /** @default the file's current one */
  readonly context?: string;
  readonly now?: () => number;
}

/** Of what KubeConfig gives, what a connection is made with. */
const TLS = ["ca", "cert", "key", "pfx", "passphrase", "servername", "rejectUnauthorized"] as const;
type Tls = Pick<RequestOptions, "ca" | "cert" | "key" | "pfx" | "passphrase" | "rejectUnauthorized"> & {
  readonly servername?: string;
};

/**
 * The credentials of a kubeconfig: exec plugins, OIDC, certificates, tokens, proxies. Only here is the library loaded: it costs 0.7 s
 * and 85 MB, which nobody pays in a pod.
 */
export async function kubeconfigCredentials(options: KubeconfigOptions = {}): Promise<Credentials> {
  const { now = Date.now } = options;
  let config = await load(options);
  const server = clusterOf(config).server;
  let tls: Tls | undefined;
  let current: { readonly access: Access; readonly at: number } | undefined;

  const look = async (): Promise<boolean> => {
    let applied = await apply(config);
    const changed = !isDeepStrictEqual(applied.tls, tls);
    if (changed && tls !== undefined && clusterOf(config).proxyUrl !== undefined) {
      // The library keeps its way through a proxy with the certificates that it first had.
      config = await load(options);
      applied = await apply(config);
    }
    const before = current?.access;
    const agent = before === undefined || changed ? agentFor(config, applied) : before.agent;
    if (before !== undefined && agent !== before.agent) retire(before.agent);
    tls = applied.tls;
    current = { access: { agent, headers: applied.headers }, at: now() };
    return before === undefined || changed || !isDeepStrictEqual(before.headers, applied.headers);
  };

  return {
    server,
    namespace: config.getContextObject(config.getCurrentContext())?.namespace,
    renew: async () => {
      // From the file again: it may have been written anew, and a plugin's cached credential is the one that was refused.
      config = await load(options);
      return look();
    },
    access: async () => {
      if (current === undefined || now() - current.at >= LOOK_AGAIN_MS) await look();
      if (current === undefined) throw new Error("the kubeconfig gave no credentials");
      return current.access;
    },
    close: () => current?.access.agent.destroy(),
  };
}

async function load({ file, context }: KubeconfigOptions): Promise<KubeConfig> {
  const library = await import("@kubernetes/client-node");
  const config = new library.KubeConfig();
  if (file === undefined) config.loadFromDefault();
  else config.loadFromFile(file);
  if (context !== undefined) {
    const known = config.getContexts().map(({ name }) => name);
    if (!known.includes(context)) {
      throw new Error(
        `there is no context ${JSON.stringify(context)}; there are: ${known.join(", ") || "none"}`,
      );
    }
    config.setCurrentContext(context);
  }
  // What the library makes up where it finds nothing at all.
  if (config.getCurrentContext() === "loaded-context") {
    throw new Error("there is no kubeconfig: set KUBECONFIG, or name a file with --kubeconfig");
  }
  return config;
}

function clusterOf(config: KubeConfig) {
  const cluster = config.getCurrentCluster();
  if (cluster !== null) return cluster;
  const contexts = config.getContexts().map(({ name }) => name);
  throw new Error(
    `the kubeconfig has no current context with a cluster; give --context: ${contexts.join(", ")}`,
  );
}

interface Applied {
  readonly tls: Tls;
  readonly headers: Readonly<Record<string, string>>;
  /** The way through the kubeconfig's own proxy. */
  readonly agent: unknown;
}

async function apply(config: KubeConfig): Promise<Applied> {
  const options: RequestOptions & Tls = { headers: {} };
  await config.applyToHTTPSOptions(options);
  const tls = Object.fromEntries(
    TLS.filter((key) => options[key] !== undefined).map((key) => [key, options[key]]),
  );
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(options.headers ?? {}))
    headers[name.toLowerCase()] = String(value);
  if (typeof options.auth === "string") {
    headers["authorization"] = `Basic ${Buffer.from(options.auth).toString("base64")}`;
  }
  return { tls, headers, agent: options.agent };
}

function agentFor(config: KubeConfig, applied: Applied): HttpAgent {
  const { server, proxyUrl } = clusterOf(config);
  if (proxyUrl !== undefined && proxyUrl !== null && applied.agent instanceof HttpAgent) return applied.agent;
  if (server.startsWith("http:")) return new HttpAgent(CONNECTION);
  return new Agent({ ...CONNECTION, ...applied.tls, ...environmentProxy(server) });
}

/** As kubectl: HTTPS_PROXY and NO_PROXY count, but never for this machine itself. */
function environmentProxy(server: string) {
  const { hostname } = new URL(server);
  const local = hostname === "localhost" || hostname === "[::1]" || /^127\./.test(hostname);
  return local ? {} : { proxyEnv: process.env };
}
