import { isDeepStrictEqual } from "node:util";
import { type JsonObject, stringAt } from "../../core/json.ts";
import { agentFor } from "./agent.ts";
import { type Access, type Credentials, closeIdleSockets } from "./credentials.ts";
import { type KubeconfigEntry, readKubeconfig } from "./kubeconfig-file.ts";
import { openLibrary } from "./library.ts";
import { type IdToken, idTokenOf, oidcSettings } from "./oidc.ts";
import { type Material, plainMaterial, type Tls } from "./plain-user.ts";

/** Exec plugins say when a credential ends, and files may be replaced: both are looked at again this often, and at once on a 401. */
const LOOK_AGAIN_MS = 10_000;

export interface KubeconfigOptions {
  /** @default `KUBECONFIG`, else `~/.kube/config` */
  readonly file?: string;
  /** @default the file's current one */
  readonly context?: string;
  readonly now?: () => number;
}

/** An ID token and what it was made from. */
interface KnownToken {
  readonly settings: JsonObject;
  readonly token: IdToken;
}

/** A kubeconfig that was read, and how to come by what it says. */
interface Opened {
  readonly entry: KubeconfigEntry;
  readonly idToken: KnownToken | undefined;
  readonly material: () => Promise<Material>;
}

/** The credentials of a kubeconfig: exec plugins, OIDC, certificates, tokens, proxies. */
export async function kubeconfigCredentials(options: KubeconfigOptions = {}): Promise<Credentials> {
  const { now = Date.now } = options;
  let opened = await open(options);
  const { server, namespace } = opened.entry;
  let tls: Tls | undefined;
  let current: { readonly access: Access; readonly at: number } | undefined;

  const look = async (from: Opened): Promise<boolean> => {
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
      // From the file again: it may have been written anew, and a plugin's cached credential is the one that was refused.
      opened.idToken?.token.invalidate();
      return look(await open(options, opened.idToken));
    },
    access: async () => {
      if (current === undefined || now() - current.at >= LOOK_AGAIN_MS) await look(opened);
      if (current === undefined) throw new Error("the kubeconfig gave no credentials");
      return current.access;
    },
    close: () => current?.access.agent.destroy(),
  };
}

async function open(
  { file, context, now = Date.now }: KubeconfigOptions,
  known?: KnownToken,
): Promise<Opened> {
  const entry = await readKubeconfig(file, context);
  const { user } = entry;
  const provider = stringAt(user, "auth-provider", "name");
  if (provider !== undefined && provider !== "oidc")
    throw new Error(
      `the kubeconfig's auth-provider ${provider} is no longer a part of Kubernetes; use its exec plugin`,
    );
  const idToken = idTokenFor(user, now, known);
  const library = user["exec"] === undefined ? undefined : await openLibrary(entry);
  let plain: Material | undefined;
  return {
    entry,
    idToken,
    material: async () => {
      // The old ones may well be good still when the files can't be read just now; the server will say. A plugin or a provider fails
      // only when what it gave has ended.
      plain = await plainMaterial(entry).catch((error: unknown) => {
        if (plain === undefined) throw error;
        return plain;
      });
      // A plugin may give a certificate or a token; whom to be instead stands in the kubeconfig.
      const found = library === undefined ? plain : await library();
      const headers = { ...plain.headers, ...found.headers };
      if (idToken !== undefined) headers["authorization"] = `Bearer ${await idToken.token.get()}`;
      return { tls: { ...plain.tls, ...found.tls }, headers };
    },
  };
}

/** The same as before where the file says the same: what was renewed since then stands in no file. */
function idTokenFor(
  user: JsonObject,
  now: () => number,
  known: KnownToken | undefined,
): KnownToken | undefined {
  const settings = oidcSettings(user);
  if (settings === undefined) return undefined;
  if (known !== undefined && isDeepStrictEqual(settings, known.settings)) return known;
  return { settings, token: idTokenOf(settings, now) };
}
