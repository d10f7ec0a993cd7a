import { Agent as HttpAgent } from "node:http";
import { Agent } from "node:https";
import { stringAt } from "../../core/json.ts";
import { CONNECTION } from "./credentials.ts";
import type { KubeconfigEntry } from "./kubeconfig-file.ts";
import { redactedUrl } from "./redacted-url.ts";
import type { Tls } from "./static-credentials.ts";

/** As kubectl accepts them. `socks5h` says explicitly that the proxy resolves names. */
const PROXY_SCHEMES = /^(https?|socks5h?):\/\//;

/** Connections to the cluster of a kubeconfig, through its proxy-url, else as for kubectl by HTTPS_PROXY and NO_PROXY. */
export async function agentFor({ server, cluster }: KubeconfigEntry, tls: Tls): Promise<HttpAgent> {
  const proxy = stringAt(cluster, "proxy-url") || undefined;
  if (proxy !== undefined) checkProxyUrl(proxy);
  const plain = server.startsWith("http:");
  if (proxy?.startsWith("socks")) {
    if (plain)
      throw new Error(`the kubeconfig's proxy-url ${redactedUrl(proxy)} needs a server with https://`);
    const { SocksAgent } = await import("./socks-agent.ts");
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
