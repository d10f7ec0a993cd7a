// The files of a pod's volumes: ConfigMaps, Secrets, the downward API, service-account tokens, and projections of them. Any other
// volume (emptyDir, a claim, a host path) is an empty folder of the pod's own.
import { at, isObject, type Json, stringAt } from "../../../src/core/json.ts";
import { fieldValue } from "./fields.ts";
import type { KubeletApi } from "./kubelet-api.ts";
import type { Item, Pod, Source, Volume } from "./pod-spec.ts";

export type Files = ReadonlyMap<string, Buffer>;

/** The volume can't be created yet; a kubelet waits and retries. */
export class NotYet extends Error {}

/** The entries of a ConfigMap or Secret as bytes. */
export function entriesOf(object: Json): Files {
  const files = new Map<string, Buffer>();
  const secret = stringAt(object, "kind") === "Secret";
  const fields: readonly (readonly [string, BufferEncoding])[] = [
    ["data", secret ? "base64" : "utf8"],
    ["binaryData", "base64"],
  ];
  for (const [field, encoding] of fields) {
    const entries = at(object, field);
    if (!isObject(entries)) continue;
    for (const [key, value] of Object.entries(entries)) {
      if (typeof value === "string") files.set(key, Buffer.from(value, encoding));
    }
  }
  return files;
}

function pick(files: Files, items: readonly Item[] | undefined): Files {
  if (items === undefined) return files;
  const picked = new Map<string, Buffer>();
  for (const { key, path } of items) {
    const content = files.get(key);
    if (content === undefined) throw new NotYet(`no key ${key}`);
    picked.set(path, content);
  }
  return picked;
}

export class Volumes {
  readonly #pod: Pod;
  readonly #api: KubeletApi;
  readonly #podIP: string;
  readonly #hostIP: string;

  constructor(pod: Pod, api: KubeletApi, podIP: string, hostIP: string) {
    this.#pod = pod;
    this.#api = api;
    this.#podIP = podIP;
    this.#hostIP = hostIP;
  }

  /** The current content of the volume; `undefined` for a volume that the pod itself writes. */
  async files(volume: Volume): Promise<Files | undefined> {
    if (volume.projected !== undefined) {
      const all = new Map<string, Buffer>();
      for (const source of volume.projected.sources ?? []) {
        for (const [path, content] of (await this.#fromSource(source)) ?? []) all.set(path, content);
      }
      return all;
    }
    return this.#fromSource(volume);
  }

  async #fromSource(source: Source): Promise<Files | undefined> {
    if (source.configMap) return this.#fromObject("configmaps", source.configMap.name, source.configMap);
    if (source.secret) {
      const { name, secretName = name ?? "" } = source.secret;
      return this.#fromObject("secrets", secretName, source.secret);
    }
    if (source.serviceAccountToken) {
      const { audience, expirationSeconds = 3600, path } = source.serviceAccountToken;
      return new Map([[path, Buffer.from(await this.#api.token(audience, expirationSeconds))]]);
    }
    if (source.downwardAPI) {
      const items = source.downwardAPI.items ?? [];
      return new Map(
        items.map(({ path, fieldRef }) => [
          path,
          Buffer.from(fieldValue(this.#pod, fieldRef?.fieldPath ?? "", this.#podIP, this.#hostIP)),
        ]),
      );
    }
    return undefined;
  }

  async #fromObject(
    resource: "configmaps" | "secrets",
    name: string,
    { items, optional }: { readonly items?: readonly Item[]; readonly optional?: boolean },
  ): Promise<Files> {
    const object = await this.#api.read(resource, name);
    if (object !== undefined) return pick(entriesOf(object), items);
    if (optional) return new Map();
    throw new NotYet(`${resource} ${name} not found`);
  }
}
