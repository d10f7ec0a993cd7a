import { FRONT_PROXY_CONFIG_MAP, LiveFrontProxy } from "../../admission/aggregated/front-proxy.ts";
import type { Client } from "../../cluster/client/client.ts";
import { followObject } from "../../cluster/informers/followed-object.ts";
import type { ReflectorLimits } from "../../cluster/informers/reflector-limits.ts";
import type { Log } from "../../core/log.ts";

export interface FrontProxySettings {
  readonly frontProxy: LiveFrontProxy;
  readonly stop: () => Promise<void>;
}

/**
 * Follows the API server's settings of its front proxy. Resolves once they are known, so that no instance becomes ready
 * before it can authenticate; until then the log names what is missing.
 */
export async function openFrontProxy(
  client: Client,
  log: Log,
  signal: AbortSignal,
  limits?: ReflectorLimits,
): Promise<FrontProxySettings> {
  const frontProxy = new LiveFrontProxy(log);
  const known = Promise.withResolvers<void>();
  const waiting = frontProxy.follow(() => known.resolve());
  const { stop } = followObject({
    client,
    log,
    ...FRONT_PROXY_CONFIG_MAP,
    use: (configMap) => frontProxy.offer(configMap),
    ...(limits === undefined ? {} : { limits }),
  });
  const abort = () => known.reject(new Error("stopped before the settings of the front proxy were read"));
  signal.addEventListener("abort", abort, { once: true });
  try {
    await known.promise;
    return { frontProxy, stop };
  } catch (error) {
    await stop();
    throw error;
  } finally {
    waiting.stop();
    signal.removeEventListener("abort", abort);
  }
}
