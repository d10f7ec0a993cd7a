import type { RequestOptions } from "node:https";
import type { JsonObject } from "../../core/json.ts";
import type { KubeconfigEntry } from "./kubeconfig-file.ts";
import type { Material, Tls } from "./static-credentials.ts";

/** The library's options that TLS connections use. */
const TLS_OPTIONS = ["ca", "cert", "key", "servername", "rejectUnauthorized"] as const;

/**
 * Exec plugins, run by @kubernetes/client-node. Loaded only for kubeconfigs with an exec plugin: the library costs half a second and
 * 45 MB.
 */
export async function openExecPlugin(entry: KubeconfigEntry): Promise<() => Promise<Material>> {
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  config.loadFromString(JSON.stringify(singleEntryConfig(entry)));
  return async () => {
    const options: RequestOptions & Tls = { headers: {} };
    await config.applyToHTTPSOptions(options);
    const tls = Object.fromEntries(
      TLS_OPTIONS.filter((key) => options[key] !== undefined).map((key) => [key, options[key]]),
    );
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(options.headers ?? {}))
      headers[name.toLowerCase()] = String(value);
    return { tls, headers };
  };
}

/** A kubeconfig with this entry alone, without its proxy, which usher's own agent goes through. */
function singleEntryConfig({ cluster, user, server }: KubeconfigEntry): JsonObject {
  const { "proxy-url": _proxy, ...rest } = cluster;
  return {
    apiVersion: "v1",
    kind: "Config",
    clusters: [{ name: "one", cluster: { ...rest, server } }],
    users: [{ name: "one", user }],
    contexts: [{ name: "one", context: { cluster: "one", user: "one" } }],
    "current-context": "one",
  };
}
