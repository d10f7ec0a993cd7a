import type { RequestOptions } from "node:https";
import { isDeepStrictEqual } from "node:util";
import { type JsonObject, stringAt } from "../../core/json.ts";
import { type ClusterAccess, type Credentials, closeIdleSockets } from "./credentials.ts";
import { agentFor } from "./kubeconfig-agent.ts";
import { type KubeconfigEntry, readKubeconfig } from "./kubeconfig-file.ts";
import { type IdToken, idTokenOf, oidcSettings } from "./oidc.ts";
import { type Material, staticMaterial, type Tls } from "./static-credentials.ts";

/** How often files and exec credentials are checked for changes; at once after a 401. */
const RELOAD_EVERY_MS = 10_000;

interface KubeconfigOptions {
  /** @default `KUBECONFIG`, else `~/.kube/config` */
  readonly file?: string;
  /** @default the file's current context */
  readonly context?: string;
  readonly now?: () => number;
}

/** An ID token and the settings it was made from. */
interface CachedToken {
  readonly settings: JsonObject;
  readonly token: IdToken;
}

/** A parsed kubeconfig entry, and how to load its credentials. */
interface Opened {
  readonly entry: KubeconfigEntry;
  readonly idToken: CachedToken | undefined;
  readonly material: () => Promise<Material>;
}

/** The credentials of a kubeconfig: exec plugins, OIDC, certificates, tokens, proxies. */
export async function kubeconfigCredentials(options: KubeconfigOptions = {}): Promise<Credentials> {
  const { now = Date.now } = options;
  let opened = await open(options);
  const { server, namespace } = opened.entry;
  let tls: Tls | undefined;
  let current: { readonly access: ClusterAccess; readonly at: number } | undefined;

  const load = async (from: Opened): Promise<boolean> => {
    const found = await from.material();
    const changed = !isDeepStrictEqual(found.tls, tls);
    const before = current?.access;
    const agent = before === undefined || changed ? await agentFor(from.entry, found.tls) : before.agent;
    if (before !== undefined && agent !== before.agent) closeIdleSockets(before.agent);
    opened = from;
    tls = found.tls;
    current = { access: { agent, headers: found.headers }, at: now() };
    return before === undefined || changed || !isDeepStrictEqual(before.headers, found.headers);
  };

  return {
    server,
    namespace,
    renew: async () => {
      // Reads the file again: it may have changed, and the exec plugin's cached credential was refused.
      opened.idToken?.token.invalidate();
      return load(await open(options, opened.idToken));
    },
    access: async () => {
      if (current === undefined || now() - current.at >= RELOAD_EVERY_MS) await load(opened);
      if (current === undefined) throw new Error("the kubeconfig has no credentials");
      return current.access;
    },
    close: () => current?.access.agent.destroy(),
  };
}

async function open(
  { file, context, now = Date.now }: KubeconfigOptions,
  known?: CachedToken,
): Promise<Opened> {
  const entry = await readKubeconfig(file, context);
  const { user } = entry;
  const provider = stringAt(user, "auth-provider", "name");
  if (provider !== undefined && provider !== "oidc")
    throw new Error(
      `the kubeconfig's auth-provider ${provider} was removed from Kubernetes; use its exec plugin`,
    );
  const idToken = idTokenFor(user, now, known);
  const execPlugin = user["exec"] === undefined ? undefined : await openExecPlugin(entry);
  let plain: Material | undefined;
  return {
    entry,
    idToken,
    material: async () => {
      // If files can't be read, the old credentials may still be valid; the API server decides. Exec plugins and providers fail
      // only after their credential expired.
      plain = await staticMaterial(entry).catch((error: unknown) => {
        if (plain === undefined) throw error;
        return plain;
      });
      // An exec plugin returns a certificate or a token; impersonation is in the kubeconfig.
      const found = execPlugin === undefined ? plain : await execPlugin();
      const headers = { ...plain.headers, ...found.headers };
      if (idToken !== undefined) headers["authorization"] = `Bearer ${await idToken.token.get()}`;
      return { tls: { ...plain.tls, ...found.tls }, headers };
    },
  };
}

/** Reuses the token while its settings are unchanged: renewed tokens are in no file. */
function idTokenFor(
  user: JsonObject,
  now: () => number,
  known: CachedToken | undefined,
): CachedToken | undefined {
  const settings = oidcSettings(user);
  if (settings === undefined) return undefined;
  if (known !== undefined && isDeepStrictEqual(settings, known.settings)) return known;
  return { settings, token: idTokenOf(settings, now) };
}

/** The library's options that TLS connections use. */
const TLS_OPTIONS = ["ca", "cert", "key", "servername", "rejectUnauthorized"] as const;

/**
 * Exec plugins, run by @kubernetes/client-node. Loaded only for kubeconfigs with an exec plugin: the library costs half a second and
 * 45 MB.
 */
async function openExecPlugin(entry: KubeconfigEntry): Promise<() => Promise<Material>> {
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
