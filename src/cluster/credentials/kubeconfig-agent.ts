import { type ClientRequest, Agent as HttpAgent } from "node:http";
import { Agent, type AgentOptions } from "node:https";
import type { Socket } from "node:net";
import { SocksProxyAgent } from "socks-proxy-agent";
import { stringAt } from "../../core/json.ts";
import { CONNECTION, redactedUrl } from "./credentials.ts";
import type { KubeconfigEntry } from "./kubeconfig-file.ts";
import type { Tls } from "./static-credentials.ts";

/** As kubectl accepts them. `socks5h` says explicitly that the proxy resolves names. */
const PROXY_SCHEMES = /^(https?|socks5h?):\/\//;

/** Connections to the cluster of a kubeconfig, through its proxy-url, else by HTTPS_PROXY and NO_PROXY, as for kubectl. */
export async function agentFor({ server, cluster }: KubeconfigEntry, tls: Tls): Promise<HttpAgent> {
  const proxy = stringAt(cluster, "proxy-url") || undefined;
  if (proxy !== undefined) checkProxyUrl(proxy);
  const plain = server.startsWith("http:");
  if (proxy?.startsWith("socks")) {
    if (plain)
      throw new Error(`the kubeconfig's proxy-url ${redactedUrl(proxy)} needs a server with https://`);
    const { SocksAgent } = await import("./kubeconfig-agent.ts");
    return new SocksAgent(proxy, { ...CONNECTION, ...tls });
  }
  const proxyEnv = proxy === undefined ? proxyEnvironment(server) : { HTTPS_PROXY: proxy, HTTP_PROXY: proxy };
  try {
    return plain
      ? new HttpAgent({ ...CONNECTION, proxyEnv })
      : new Agent({ ...CONNECTION, ...tls, proxyEnv });
  } catch (error) {
    // Node's message and error quote the address with its password, so this error has no cause either.
    if (!(error instanceof Error && "code" in error && error.code === "ERR_PROXY_INVALID_CONFIG"))
      throw error;
    throw new Error(
      "invalid environment variable HTTPS_PROXY or HTTP_PROXY: must be a URL such as http://proxy:3128",
    );
  }
}

function checkProxyUrl(proxy: string): void {
  if (!PROXY_SCHEMES.test(proxy))
    throw new Error(
      `the kubeconfig's proxy-url must start with http://, https:// or socks5://, got ${redactedUrl(proxy)}`,
    );
  if (!URL.canParse(proxy))
    throw new Error(`the kubeconfig's proxy-url is not a valid URL: ${redactedUrl(proxy)}`);
}

/** Loopback addresses never go through a proxy. */
function proxyEnvironment(server: string): NodeJS.ProcessEnv | undefined {
  const { hostname } = new URL(server);
  const local = hostname === "localhost" || hostname === "[::1]" || /^127\./.test(hostname);
  return local ? undefined : process.env;
}

/**
 * HTTPS connections through a SOCKS 5 proxy, which resolves the names, as for kubectl. Loaded only for a kubeconfig whose proxy-url is
 * a SOCKS proxy. The library limits the handshake with the proxy to 30 s.
 */
export class SocksAgent extends SocksProxyAgent {
  constructor(proxy: string, options: AgentOptions) {
    const { keepAlive, keepAliveMsecs: keepAliveInitialDelay } = options;
    super(proxy.replace(/^socks5:/, "socks5h:"), {
      ...options,
      socketOptions: {
        ...(keepAlive === undefined ? {} : { keepAlive }),
        ...(keepAliveInitialDelay === undefined ? {} : { keepAliveInitialDelay }),
      },
    });
    // The library would also end connections in use after the agent's idle timeout, for example a watch between two
    // events.
    this.timeout = null;
    // URLs put IPv6 addresses in brackets; sockets take them without.
    this.proxy.host = this.proxy.host?.replace(/^\[|\]$/g, "") ?? "";
  }

  /** The library would look for node:https in a stack trace. */
  override isSecureEndpoint(): boolean {
    return true;
  }

  override async connect(
    request: ClientRequest,
    options: Parameters<SocksProxyAgent["connect"]>[1],
  ): Promise<Socket> {
    let connected: Socket | undefined;
    request.once("proxy", ({ socket }: { readonly socket: Socket }) => {
      connected = socket;
    });
    try {
      return await super.connect(request, options);
    } catch (error) {
      // TLS may fail to start, for example with an invalid client certificate.
      connected?.destroy();
      const { host, port } = this.proxy;
      const why = error instanceof Error ? error.message : String(error);
      // No cause: the library's errors carry the proxy's settings.
      throw new Error(
        `connecting to ${options.host}:${options.port} through proxy-url ${host}:${port}: ${why}`,
      );
    }
  }
}
