import { at, equal, type Json, stringAt } from "../../core/json.ts";
import type { Log } from "../../core/log.ts";
import { certificatesOf } from "../tls/bundle.ts";
import type { ClientCheck } from "../tls/client-certificate.ts";

/** Where an API server publishes how to authenticate its aggregation layer. */
export const FRONT_PROXY_CONFIG_MAP = {
  resource: "configmaps",
  namespace: "kube-system",
  name: "extension-apiserver-authentication",
} as const;

const WHERE = `ConfigMap ${FRONT_PROXY_CONFIG_MAP.namespace}/${FRONT_PROXY_CONFIG_MAP.name}`;

const KEYS = {
  names: "requestheader-allowed-names",
  username: "requestheader-username-headers",
  uid: "requestheader-uid-headers",
  group: "requestheader-group-headers",
  extraPrefix: "requestheader-extra-headers-prefix",
} as const;

/** How to authenticate the cluster's front proxy, and the headers with the user's identity. Header names are in lower case. */
export interface FrontProxy extends ClientCheck {
  readonly usernameHeaders: readonly string[];
  readonly uidHeaders: readonly string[];
  readonly groupHeaders: readonly string[];
  readonly extraHeaderPrefixes: readonly string[];
}

/** The settings that an API server publishes in a ConfigMap; or an error message. */
export function parseFrontProxy(configMap: Json | undefined): FrontProxy | string {
  if (configMap === undefined) return `${WHERE} does not exist: an API server with aggregation writes it`;
  const data = at(configMap, "data");
  const authorities = certificatesOf([stringAt(data, "requestheader-client-ca-file") ?? ""]);
  if (authorities.length === 0)
    return `${WHERE} has no certificate in requestheader-client-ca-file: start kube-apiserver with --requestheader-client-ca-file`;
  const lists = Object.values(KEYS).map((key) => ({ key, list: listIn(data, key) }));
  const broken = lists.find(({ list }) => list === undefined);
  if (broken !== undefined) return `${WHERE}: ${broken.key} is not a JSON list of strings`;
  const of = (key: string) => lists.find((one) => one.key === key)?.list ?? [];
  const headers = (key: string) => of(key).map((name) => name.toLowerCase());
  const names = of(KEYS.names);
  const usernameHeaders = headers(KEYS.username);
  if (usernameHeaders.length === 0) return `${WHERE} has no ${KEYS.username}`;
  return {
    ca: authorities.join(""),
    // An empty list allows every certificate of the CA.
    names: names.length === 0 ? undefined : names,
    usernameHeaders,
    uidHeaders: headers(KEYS.uid),
    groupHeaders: headers(KEYS.group),
    extraHeaderPrefixes: headers(KEYS.extraPrefix),
  };
}

/** A JSON list, because all values of a ConfigMap are strings; empty if absent. */
function listIn(data: Json | undefined, key: string): readonly string[] | undefined {
  const text = stringAt(data, key);
  if (text === undefined || text === "") return at(data, key) === undefined || text === "" ? [] : undefined;
  try {
    const list = JSON.parse(text) as Json;
    return Array.isArray(list) && list.every((one) => typeof one === "string") ? list : undefined;
  } catch {
    return undefined;
  }
}

/** The settings of the front proxy as they change. */
export class LiveFrontProxy {
  #current: FrontProxy | undefined;
  readonly #log: Log;
  readonly #users = new Set<(settings: FrontProxy) => void>();
  #reported: string | undefined;

  constructor(log: Log) {
    this.#log = log;
  }

  /** Absent until the first valid settings were read: until then no client is authenticated. */
  get current(): FrontProxy | undefined {
    return this.#current;
  }

  /**
   * Updates the settings from the ConfigMap; `undefined` if it does not exist. If it is invalid the last valid settings
   * stay: the API server rewrites it, and calls in the meantime.
   */
  offer(configMap: Json | undefined): void {
    const parsed = parseFrontProxy(configMap);
    if (typeof parsed === "string") {
      if (parsed === this.#reported) return;
      this.#reported = parsed;
      const effect =
        this.#current === undefined
          ? "no request can be authenticated"
          : "the last valid settings stay in use";
      this.#log.warn({ error: parsed }, `waiting for the settings of the front proxy: ${effect}`);
      return;
    }
    this.#reported = undefined;
    const isNew = !equal(parsed as unknown as Json, (this.#current ?? null) as unknown as Json);
    if (!isNew) return;
    this.#current = parsed;
    this.#log.info({ names: parsed.names ?? "any" }, "read the settings of the front proxy");
    for (const use of this.#users) use(parsed);
  }

  /** Calls `use` with all new settings. */
  follow(use: (settings: FrontProxy) => void): { readonly stop: () => void } {
    this.#users.add(use);
    return { stop: () => void this.#users.delete(use) };
  }
}
