import { Agent as HttpAgent } from "node:http";
import { Agent } from "node:https";
import { stringAt } from "../../core/json.ts";
import { CONNECTION } from "./credentials.ts";
import type { KubeconfigEntry } from "./kubeconfig-file.ts";
import type { Tls } from "./plain-user.ts";
import { shownAddress } from "./shown-address.ts";

/** What kubectl takes; in `socks5h` it is written out that the proxy resolves names. */
const PROXIES = /^(https?|socks5h?):\/\//;

/** Connections to the cluster of a kubeconfig, through the proxy that it names, else as kubectl by HTTPS_PROXY and NO_PROXY. */
export async function agentFor({ server, cluster }: KubeconfigEntry, tls: Tls): Promise<HttpAgent> {
  const proxy = stringAt(cluster, "proxy-url") || undefined;
  if (proxy !== undefined) check(proxy);
  const plain = server.startsWith("http:");
  if (proxy?.startsWith("socks")) {
    if (plain)
      throw new Error(`the kubeconfig's proxy-url ${shownAddress(proxy)} is only for a server with https`);
    const { SocksAgent } = await import("./socks-agent.ts");
    return new SocksAgent(proxy, { ...CONNECTION, ...tls });
  }
  const proxyEnv = proxy === undefined ? environmentFor(server) : { HTTPS_PROXY: proxy, HTTP_PROXY: proxy };
  try {
    return plain
      ? new HttpAgent({ ...CONNECTION, proxyEnv })
      : new Agent({ ...CONNECTION, ...tls, proxyEnv });
  } catch (error) {
    // Node's own words have the address whole, with its password; so this error has no cause either.
    if (!(error instanceof Error && "code" in error && error.code === "ERR_PROXY_INVALID_CONFIG"))
      throw error;
    throw new Error(
      "the variable HTTPS_PROXY or HTTP_PROXY is no address of a proxy, as http://proxy:3128 is one",
    );
  }
}

function check(proxy: string): void {
  if (!PROXIES.test(proxy))
    throw new Error(
      `the kubeconfig's proxy-url must begin with http://, https:// or socks5://, and is ${shownAddress(proxy)}`,
    );
  if (!URL.canParse(proxy))
    throw new Error(`the kubeconfig's proxy-url is no address: ${shownAddress(proxy)}`);
}

/** Never for this machine itself. */
function environmentFor(server: string): NodeJS.ProcessEnv | undefined {
  const { hostname } = new URL(server);
  const local = hostname === "localhost" || hostname === "[::1]" || /^127\./.test(hostname);
  return local ? undefined : process.env;
}
