import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { hasList, StatusError } from "./api-response.ts";
import type { ApiResponse, Client, RequestOptions } from "./client.ts";
import { collectionPath, type ServedResource } from "./discovery.ts";

/** The API server's own default for kubectl. */
const PAGE_SIZE = 500;

/** One page of a LIST. */
export interface Page {
  /** Each with apiVersion and kind: the items of built-in kinds do not have them, only the list does. */
  readonly items: readonly JsonObject[];
  /** Empty for lists that are not stored, such as metrics. */
  readonly resourceVersion: string;
  /** The continue token of the next page; `undefined` on the last one. */
  readonly next: string | undefined;
  /** How many more objects there are after this page, where the API server knows. */
  readonly remaining: number | undefined;
}

export interface ListOptions {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Where an earlier list stopped. */
  readonly continue?: string | undefined;
  /** How many objects the next page may have; 0: all at once. @default 500 */
  readonly limit?: (() => number) | undefined;
  /** How a page is requested. @default once, without a deadline */
  readonly get?: ((path: string) => Promise<ApiResponse>) | undefined;
}

/** A LIST that failed. Nothing is known of the objects that were not read. */
export class ListError extends StatusError {
  /** Whether the first page failed: only then can a 404 mean that the resource is not served. */
  readonly firstPage: boolean;

  constructor(what: string, answer: ApiResponse, firstPage: boolean) {
    super(answer.status === 200 ? `${what}: not a list` : what, answer);
    this.firstPage = firstPage;
  }
}

/**
 * The page in a response body; `undefined` where the body is not a list. A proxy or a broken API service can answer with 200 as well, and
 * absence from a list means absence from the cluster, so nothing else may pass for an empty list. Go encodes nil slices as null.
 */
export function pageIn(body: Json | undefined): Page | undefined {
  if (!hasList(body, "items")) return undefined;
  const items = listAt(body, "items");
  if (!items.every(isObject)) return undefined;
  const apiVersion = stringAt(body, "apiVersion");
  const kind = stringAt(body, "kind")?.replace(/List$/, "");
  const type = apiVersion === undefined || kind === undefined ? {} : { apiVersion, kind };
  const remaining = at(body, "metadata", "remainingItemCount");
  return {
    items: items.map((item) => ({ ...type, ...item })),
    resourceVersion: stringAt(body, "metadata", "resourceVersion") ?? "",
    next: stringAt(body, "metadata", "continue") || undefined,
    remaining:
      typeof remaining === "number" && Number.isSafeInteger(remaining) && remaining >= 0
        ? remaining
        : undefined,
  };
}

/** The pages of a collection, in order. Throws a ListError for whatever is not a page of a list, 404 and 410 included. */
export async function* listPages(
  client: Pick<Client, "request">,
  path: string,
  options: ListOptions = {},
): AsyncGenerator<Page, void> {
  const { labelSelector, fieldSelector, limit = () => PAGE_SIZE } = options;
  const get = options.get ?? ((page: string) => client.request("GET", page));
  let token = options.continue;
  for (let first = true; ; first = false) {
    const size = limit();
    const query = queryOf({
      labelSelector,
      fieldSelector,
      limit: size === 0 ? undefined : String(size),
      continue: token,
    });
    const answer = await get(query === "" ? path : `${path}?${query}`);
    const page = answer.status === 200 ? pageIn(answer.body) : undefined;
    // A token that repeats would be followed forever.
    if (page === undefined || (page.next !== undefined && page.next === token))
      throw new ListError(`listing ${path}`, answer, first);
    yield page;
    if (page.next === undefined) return;
    token = page.next;
  }
}

/**
 * All objects of a collection. A continue token expires with etcd's compaction, after 5 to 10 minutes: then the list is read again in one
 * piece, as client-go's pager does, since pages of two states would miss objects.
 */
export async function listAll(
  client: Pick<Client, "request">,
  path: string,
  options: Pick<ListOptions, "labelSelector" | "get"> & { readonly signal?: AbortSignal } = {},
): Promise<JsonObject[]> {
  const { signal } = options;
  const requestOptions: RequestOptions = signal === undefined ? {} : { signal };
  const get = options.get ?? ((page: string) => client.request("GET", page, requestOptions));
  const read = async (limit: number): Promise<JsonObject[]> => {
    const found: JsonObject[] = [];
    for await (const { items } of listPages(client, path, { ...options, get, limit: () => limit }))
      for (const item of items) found.push(item);
    return found;
  };
  try {
    return await read(PAGE_SIZE);
  } catch (error) {
    if (!(error instanceof ListError && error.status === 410 && !error.firstPage)) throw error;
    return read(0);
  }
}

/**
 * All objects of a resource that may not be served, such as a custom resource whose CRD was just deleted. A 404 alone does not prove it:
 * discovery, asked again, must no longer list the resource.
 */
export async function listIfServed(
  client: Pick<Client, "request">,
  resource: ServedResource,
  namespace?: string,
  options: Pick<ListOptions, "labelSelector"> = {},
): Promise<JsonObject[]> {
  try {
    return await listAll(client, collectionPath(resource, namespace), options);
  } catch (error) {
    if (!(error instanceof ListError && error.status === 404 && error.firstPage)) throw error;
    if (await isListedByDiscovery(client, resource)) throw error;
    return [];
  }
}

async function isListedByDiscovery(
  client: Pick<Client, "request">,
  { group, version, resource }: ServedResource,
): Promise<boolean> {
  const groupVersion = group === "" ? version : `${group}/${version}`;
  const resources = await discoveredResources(client, groupVersion);
  return resources.some((entry) => stringAt(entry, "name") === resource);
}

/**
 * The resources of a group version. None where it is not served: a 404 that the list of groups, asked afterwards, confirms. Throws where
 * the API server can't say.
 */
export async function discoveredResources(
  client: Pick<Client, "request">,
  groupVersion: string,
): Promise<readonly Json[]> {
  const isCore = !groupVersion.includes("/");
  const path = isCore ? `/api/${groupVersion}` : `/apis/${groupVersion}`;
  const answer = await client.request("GET", path);
  if (answer.status === 200 && hasList(answer.body, "resources")) return listAt(answer.body, "resources");
  const isGone =
    answer.status === 404 && !isCore && !(await discoveredGroupVersions(client)).includes(groupVersion);
  if (isGone) return [];
  throw new StatusError(`discovering the resources of ${groupVersion}`, answer);
}

/** Every group version beside the core group's, in the order of the API server. */
export async function discoveredGroupVersions(client: Pick<Client, "request">): Promise<string[]> {
  const answer = await client.request("GET", "/apis");
  if (answer.status !== 200 || !hasList(answer.body, "groups"))
    throw new StatusError("discovering the API groups", answer);
  return listAt(answer.body, "groups").flatMap((group) =>
    listAt(group, "versions").flatMap((version) => stringAt(version, "groupVersion") ?? []),
  );
}

function queryOf(parts: Readonly<Record<string, string | undefined>>): string {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(parts)) if (value !== undefined) query.set(name, value);
  return query.toString();
}
