import type { RequestOptions } from "node:https";
import type { JsonObject } from "../../core/json.ts";
import type { KubeconfigEntry } from "./kubeconfig-file.ts";
import type { Material, Tls } from "./plain-user.ts";

/** Of what the library gives, what a connection is made with. */
const TLS = ["ca", "cert", "key", "servername", "rejectUnauthorized"] as const;

/**
 * Exec plugins, by Kubernetes' own library. Only here is it loaded: it costs half a second and 45 MB, which nobody pays in a pod or
 * with a kubeconfig that has none.
 */
export async function openLibrary(entry: KubeconfigEntry): Promise<() => Promise<Material>> {
  const { KubeConfig } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  config.loadFromString(JSON.stringify(single(entry)));
  return async () => {
    const options: RequestOptions & Tls = { headers: {} };
    await config.applyToHTTPSOptions(options);
    const tls = Object.fromEntries(
      TLS.filter((key) => options[key] !== undefined).map((key) => [key, options[key]]),
    );
    const headers: Record<string, string> = {};
    for (const [name, value] of Object.entries(options.headers ?? {}))
      headers[name.toLowerCase()] = String(value);
    return { tls, headers };
  };
}

/** A kubeconfig with this entry alone. Its proxy is ours to go through. */
function single({ cluster, user, server }: KubeconfigEntry): JsonObject {
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
