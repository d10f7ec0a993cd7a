import type { ClientRequest } from "node:http";
import type { AgentOptions } from "node:https";
import type { Socket } from "node:net";
import { SocksProxyAgent } from "socks-proxy-agent";

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
    // The library would also end connections in use after the agent's idle timeout, a watch between two events for instance.
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
      // TLS may fail to start, with an invalid client certificate for instance.
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
