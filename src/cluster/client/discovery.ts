import { resourceName } from "../../core/decision/request.ts";
import { at, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import type { Module } from "../../core/module/module.ts";
import { type Kind, kindResource } from "../../core/policy/kind.ts";
import { hasList, StatusError } from "./api-response.ts";
import type { ApiResponse, Client } from "./client.ts";

/** A resource as this API server serves it. */
export interface ServedResource {
  readonly group: string;
  readonly version: string;
  /** The plural: `deployments`. */
  readonly resource: string;
  readonly namespaced: boolean;
}

/** A resource as modules declare it, with the versions that usher can read, the preferred first. */
export interface DeclaredResource {
  readonly group: string;
  readonly versions: readonly string[];
  readonly resource: string;
  readonly namespaced: boolean;
}

/** Maps the names that modules use, `pods` or `deployments.apps`, to paths of the API server. */
export interface ResourceResolver {
  /**
   * The path of a collection, an object or a subresource. Rejects if the resource is not served or a name is invalid in
   * a path. An empty namespace counts as none.
   */
  readonly pathOf: (
    resource: string,
    namespace?: string,
    name?: string,
    subresource?: string,
  ) => Promise<string>;
  /** Asks the API server: `undefined` if it does not serve the resource; rejects if discovery fails. */
  readonly discover: (resource: string, signal?: AbortSignal) => Promise<ServedResource | undefined>;
}

/** The API server does not serve the resource in a version that usher can read. */
export class NotServedError extends Error {
  readonly resource: string;

  constructor(resource: string, server: string) {
    super(
      `${resource} is not served by ${server}; is its CustomResourceDefinition or API service installed?`,
    );
    this.resource = resource;
  }
}

/** Discovery failed. */
export class DiscoveryError extends StatusError {
  constructor(path: string, response: ApiResponse) {
    super(`discovery: GET ${path}`, response);
  }
}

/** The declarations of modules by resource name. Kinds declare most, so they override reads. */
export function declaredResources(modules: readonly Module[]): Map<string, DeclaredResource> {
  const declared = new Map<string, DeclaredResource>();
  for (const { reads } of modules) {
    for (const { group, version, resource, scope } of reads) {
      const name = resourceName({ group, resource });
      const versions = new Set([...(declared.get(name)?.versions ?? []), version]);
      declared.set(name, { group, versions: [...versions], resource, namespaced: scope === "Namespaced" });
    }
  }
  for (const kind of modules.flatMap(({ kinds }) => kinds)) {
    if (kind.standing !== "resource") continue;
    const { group, plural, scope } = kind;
    const namespaced = scope === "Namespaced";
    declared.set(kindResource(kind), { group, versions: versionsOf(kind), resource: plural, namespaced });
  }
  return declared;
}

/** The storage version first: others cost the API server a conversion of each object. */
function versionsOf({ versions }: Kind): string[] {
  const stored = versions.filter(({ storage }) => storage);
  return [...stored, ...versions.filter(({ storage }) => !storage)].map(({ name }) => name);
}

export function collectionPath(served: ServedResource, namespace = ""): string {
  const { group, version, resource } = served;
  const root = group === "" ? `/api/${version}` : `/apis/${group}/${version}`;
  return namespace === ""
    ? `${root}/${resource}`
    : `${root}/namespaces/${pathSegment("namespace", namespace)}/${resource}`;
}

/** Resolves by declarations where they leave no choice of version, otherwise by discovery, once. */
export function createResources(client: Client, modules: readonly Module[]): ResourceResolver {
  const declared = declaredResources(modules);
  const known = new Map<string, Promise<ServedResource>>();

  const discover = (resource: string, signal?: AbortSignal): Promise<ServedResource | undefined> =>
    discovered((path, list) => ask(client, path, list, signal), resource, declared.get(resource));

  const locate = (resource: string): Promise<ServedResource> => {
    const before = known.get(resource);
    if (before !== undefined) return before;
    const located = servedByDeclaration(declared.get(resource)) ?? discover(resource);
    const found = Promise.resolve(located).then((served) => {
      if (served === undefined) throw new NotServedError(resource, client.server);
      return served;
    });
    known.set(resource, found);
    // A resource that is not served now may be served later.
    found.catch(() => known.delete(resource));
    return found;
  };

  return {
    discover,
    pathOf: async (resource, namespace = "", name, subresource) => {
      const served = await locate(resource);
      if (namespace !== "" && !served.namespaced) {
        throw new Error(
          `${resource} is cluster-scoped: it must not have a namespace, got ${JSON.stringify(namespace)}`,
        );
      }
      const collection = collectionPath(served, namespace);
      if (name === undefined) return collection;
      if (namespace === "" && served.namespaced) {
        throw new Error(`${resource} ${JSON.stringify(name)}: a namespace is required`);
      }
      const path = `${collection}/${pathSegment("name", name)}`;
      return subresource === undefined ? path : `${path}/${pathSegment("subresource", subresource)}`;
    },
  };
}

function servedByDeclaration(declared: DeclaredResource | undefined): ServedResource | undefined {
  const [version, ...others] = declared?.versions ?? [];
  if (declared === undefined || version === undefined || others.length > 0) return undefined;
  const { group, resource, namespaced } = declared;
  return { group, version, resource, namespaced };
}

/** Requests a path whose response has this list. `undefined`: the group or version does not exist. */
type Ask = (path: string, list: string) => Promise<ApiResponse | undefined>;

async function discovered(
  get: Ask,
  name: string,
  declared: DeclaredResource | undefined,
): Promise<ServedResource | undefined> {
  const [resource = "", ...rest] = name.split(".");
  const group = declared?.group ?? rest.join(".");
  for (const version of declared?.versions ?? (await versionsServed(get, group))) {
    const path = group === "" ? `/api/${version}` : `/apis/${pathSegment("API group", group)}/${version}`;
    const answer = await get(path, "resources");
    const entry = listAt(answer?.body, "resources").find((one) => stringAt(one, "name") === resource);
    if (entry !== undefined)
      return { group, version, resource, namespaced: at(entry, "namespaced") === true };
  }
  return undefined;
}

async function versionsServed(get: Ask, group: string): Promise<string[]> {
  if (group === "") return ["v1"];
  const answer = await get(`/apis/${pathSegment("API group", group)}`, "versions");
  const preferred = stringAt(answer?.body, "preferredVersion", "version");
  const all = listAt(answer?.body, "versions").map((one) => stringAt(one, "version") ?? "");
  return [...(preferred === undefined ? [] : [preferred]), ...all.filter((version) => version !== preferred)];
}

async function ask(
  client: Client,
  path: string,
  list: string,
  signal: AbortSignal | undefined,
): Promise<ApiResponse | undefined> {
  const answer = await client.request("GET", path, signal === undefined ? {} : { signal });
  if (answer.status === 404) return undefined;
  // A proxy may answer 200 as well: only a list can show that nothing is served.
  if (answer.status !== 200 || !hasList(answer.body, list)) throw new DiscoveryError(path, answer);
  return answer;
}

/**
 * A name as one segment of a path. Throws for names that the API server, or a proxy, could read as another path,
 * instead of escaping them: `users/a%2Fb` must never mean the user `a`, and `..` must never leave a collection.
 * Kubernetes allows no such object names.
 */
export function pathSegment(what: string, text: string): string {
  if (text === "" || text === "." || text === ".." || /[/%\\\p{Cc}]/u.test(text)) {
    throw new Error(
      `invalid ${what} ${JSON.stringify(text)}: must not be empty, "." or "..", nor contain slashes, backslashes, percent signs or control characters`,
    );
  }
  return encodeURIComponent(text);
}

/** The path of an object by its apiVersion, kind, namespace and name. */
export type PathOfObject = (object: JsonObject) => Promise<string>;

interface Served {
  readonly resource: string;
  readonly namespaced: boolean;
}

/** Discovers each kind once; a kind that is not served is looked up again the next time. */
export function createKindPaths(client: Client): PathOfObject {
  const known = new Map<string, Served>();

  return async (object) => {
    const apiVersion = stringAt(object, "apiVersion") ?? "";
    const kind = stringAt(object, "kind") ?? "";
    const name = stringAt(object, "metadata", "name") ?? "";
    const namespace = stringAt(object, "metadata", "namespace");
    const root = rootOf(apiVersion);
    const key = `${apiVersion} ${kind}`;
    const served = known.get(key) ?? (await discover(client, root, kind));
    known.set(key, served);
    if (served.namespaced && namespace === undefined)
      throw new Error(`${kind} ${name}: metadata.namespace is required`);
    const scope = served.namespaced ? `/namespaces/${pathSegment("namespace", namespace ?? "")}` : "";
    return `${root}${scope}/${served.resource}/${pathSegment("name", name)}`;
  };
}

function rootOf(apiVersion: string): string {
  const parts = apiVersion.split("/").map((part) => pathSegment("API version", part));
  return parts.length === 1 ? `/api/${parts[0]}` : `/apis/${parts.join("/")}`;
}

async function discover(client: Client, root: string, kind: string): Promise<Served> {
  const answer = await client.request("GET", root);
  if (answer.status !== 200 || !hasList(answer.body, "resources")) throw new DiscoveryError(root, answer);
  for (const entry of listAt(answer.body, "resources")) {
    const resource = stringAt(entry, "name") ?? "";
    // `deployments/scale` is a subresource, and its kind may be that of a resource.
    if (stringAt(entry, "kind") === kind && !resource.includes("/"))
      return { resource, namespaced: at(entry, "namespaced") === true };
  }
  throw new Error(`${root} does not serve the kind ${kind}`);
}
