import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { nameOf, namespaceOf } from "../../core/kubernetes/object.ts";
import { hasList, StatusError } from "./api-response.ts";
import type { ApiResponse, Client, RequestOptions } from "./client.ts";
import { collectionPath, type ServedResource } from "./discovery.ts";
import { TooLargeError } from "./response-body.ts";

/** The API server's own default for kubectl. */
const PAGE_SIZE = 500;

/** Objects of the first page: 25 pods of a busy cluster have 250 KB of JSON. Later page sizes follow from the observed sizes. */
const FIRST_PAGE_SIZE = 25;

/**
 * The text of a page. Parsed, JSON takes up to 22 times its text (`{},{},`), so a page takes at most 44 MiB of a heap
 * of 256 MiB. Ordinary objects take less than twice their text: a page of 200 pods takes four.
 */
export const PAGE_BYTES = 2 * 1024 * 1024;

/** A page that did not fit may have been far too large: from 25 objects, two more requests reduce it to one. */
const SHRINK = 4;
const GROW = 2;

/** One page of a LIST. */
export interface ListPage {
  /** Each with apiVersion and kind: items of built-in kinds lack them, only the list has them. */
  readonly items: readonly JsonObject[];
  /** Empty for lists that are not stored, such as metrics. */
  readonly resourceVersion: string;
  /** The continue token of the next page; `undefined` on the last one. */
  readonly next: string | undefined;
  /** The number of objects after this page, if the API server knows it. */
  readonly remaining: number | undefined;
  /** An object that was left out because it is larger than an object can be. */
  readonly skipped?: { readonly namespace: string; readonly name: string };
}

export interface ListOptions {
  readonly labelSelector?: string | undefined;
  readonly fieldSelector?: string | undefined;
  /** Where an earlier list stopped. */
  readonly continue?: string | undefined;
  /** The maximum number of objects of the next page. @default 500 */
  readonly limit?: (() => number) | undefined;
  /** How a page is requested. @default once, without a deadline */
  readonly get?: GetPage | undefined;
  /** @default objects stay whole */
  readonly keep?: Keep | undefined;
}

/** Reduces an object to the parts that are read, as soon as it is parsed. */
export type Keep = (item: JsonObject) => JsonObject;

export type GetPage = (
  path: string,
  options: Pick<RequestOptions, "limitBytes" | "accept">,
) => Promise<ApiResponse>;

/** The page size: small at first, larger while pages are small, smaller after a page that did not fit. */
export class PageSize {
  readonly #most: number;
  #size: number;

  constructor(most = PAGE_SIZE) {
    this.#most = most;
    this.#size = Math.min(FIRST_PAGE_SIZE, most);
  }

  /** For the next page, of at most `room` objects. */
  within(room: number): number {
    return Math.max(1, Math.min(this.#size, room));
  }

  fitted(size: number, bytes: number): void {
    if (size === this.#size && bytes * GROW <= PAGE_BYTES) this.#size = Math.min(this.#most, size * GROW);
  }

  tooLarge(size: number): void {
    this.#size = Math.max(1, Math.floor(size / SHRINK));
  }
}

/** A LIST that failed. The objects that were not read are unknown. */
export class ListError extends StatusError {
  /** Whether the first page failed: only then can a 404 mean that the resource is not served. */
  readonly firstPage: boolean;

  constructor(what: string, answer: ApiResponse, firstPage: boolean) {
    super(answer.status === 200 ? `${what}: not a list` : what, answer);
    this.firstPage = firstPage;
  }
}

/**
 * The page in a response body; `undefined` if the body is not a list. A proxy or a broken API service can answer with
 * 200 as well, and absence from a list means absence from the cluster, so no other body may pass for an empty list. Go
 * encodes nil slices as null.
 */
export function pageIn(body: Json | undefined, keep: Keep = (item) => item): ListPage | undefined {
  if (!hasList(body, "items")) return undefined;
  const items = listAt(body, "items");
  if (!items.every(isObject)) return undefined;
  const apiVersion = stringAt(body, "apiVersion");
  const kind = stringAt(body, "kind")?.replace(/List$/, "");
  const type = apiVersion === undefined || kind === undefined ? {} : { apiVersion, kind };
  const remaining = at(body, "metadata", "remainingItemCount");
  return {
    items: items.map((item) => keep({ ...type, ...item })),
    resourceVersion: stringAt(body, "metadata", "resourceVersion") ?? "",
    next: stringAt(body, "metadata", "continue") || undefined,
    remaining:
      typeof remaining === "number" && Number.isSafeInteger(remaining) && remaining >= 0
        ? remaining
        : undefined,
  };
}

/**
 * Reads the next page of a list; no other function does. A page that does not fit into memory is requested again with
 * fewer objects, down to one. Throws a ListError for anything else than a page of a list, including 404 and 410.
 */
export async function readPage(
  get: GetPage,
  path: string,
  query: { readonly [name: string]: string | undefined; readonly continue?: string | undefined },
  size: PageSize,
  { room = PAGE_SIZE, keep }: { readonly room?: number; readonly keep?: Keep | undefined } = {},
): Promise<ListPage> {
  const { continue: token, ...selection } = query;
  const ask = async (
    limit: number,
    options: Parameters<GetPage>[1],
    at: { readonly [name: string]: string } = {},
  ) => {
    const parts = { ...selection, ...at, limit: String(limit), continue: token };
    const answer = await get(`${path}?${queryOf(parts)}`, options);
    const page = answer.status === 200 ? pageIn(answer.body, keep) : undefined;
    // A repeated token would be followed forever.
    if (page === undefined || (page.next !== undefined && page.next === token))
      throw new ListError(`listing ${path}`, answer, token === undefined);
    return { page, bytes: answer.text.length };
  };
  for (;;) {
    const limit = size.within(room);
    try {
      const { page, bytes } = await ask(limit, limit === 1 ? {} : { limitBytes: PAGE_BYTES });
      size.fitted(limit, bytes);
      return page;
    } catch (error) {
      if (!(error instanceof TooLargeError)) throw error;
      if (limit > 1) {
        size.tooLarge(limit);
        continue;
      }
      const { items, ...page } = (await ask(1, { accept: METADATA_ONLY })).page;
      const [left, ...others] = items;
      // A server that ignores the limit sends all objects: then none can be left out.
      if (left === undefined || others.length > 0) throw error;
      // A token names a state of the cluster. Without one, another object may have become the first, which may fit.
      const { resourceVersion } = page;
      const exact = { resourceVersion, resourceVersionMatch: "Exact" };
      const first =
        token === undefined && resourceVersion !== ""
          ? await ask(1, {}, exact).catch(tooLargeAgain)
          : undefined;
      if (first !== undefined) return first.page;
      return { ...page, items: [], skipped: { namespace: namespaceOf(left), name: nameOf(left) } };
    }
  }
}

function tooLargeAgain(error: unknown): undefined {
  if (!(error instanceof TooLargeError)) throw error;
}

/** A list that holds only the metadata of objects. */
const METADATA_ONLY = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

/** The pages of a collection, in order. */
export async function* listPages(
  client: Pick<Client, "request">,
  path: string,
  options: ListOptions = {},
): AsyncGenerator<ListPage, void> {
  const { labelSelector, fieldSelector, keep, limit = () => PAGE_SIZE } = options;
  const get = options.get ?? ((page, how) => client.request("GET", page, how));
  const size = new PageSize();
  for (let token = options.continue; ; ) {
    const query = { labelSelector, fieldSelector, continue: token };
    const page = await readPage(get, path, query, size, { room: limit(), keep });
    yield page;
    if (page.next === undefined) return;
    token = page.next;
  }
}

/**
 * All objects of a collection, for lists that are bounded by usher's own objects. A continue token expires with etcd's
 * compaction, after 5 to 10 minutes: then the list is read again, once, because pages of two states would miss objects.
 * Throws if an object would be left out.
 */
export async function listAll(
  client: Pick<Client, "request">,
  path: string,
  options: Pick<ListOptions, "labelSelector" | "get"> & { readonly signal?: AbortSignal } = {},
): Promise<JsonObject[]> {
  const { signal } = options;
  const requestOptions: RequestOptions = signal === undefined ? {} : { signal };
  const get: GetPage =
    options.get ?? ((page, how) => client.request("GET", page, { ...requestOptions, ...how }));
  const read = async (): Promise<JsonObject[]> => {
    const found: JsonObject[] = [];
    for await (const { items, skipped } of listPages(client, path, { ...options, get })) {
      if (skipped !== undefined)
        throw new TooLargeError(
          `listing ${path}: ${skipped.namespace}/${skipped.name} is too large to be read`,
        );
      for (const item of items) found.push(item);
    }
    return found;
  };
  return read().catch((error: unknown) => {
    if (error instanceof ListError && error.status === 410 && !error.firstPage) return read();
    throw error;
  });
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
 * The resources of a group version. Empty if it is not served: a 404, confirmed by the list of groups requested
 * afterwards. Throws if the API server gives no clear answer.
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

/** Every group version except the core group's, in the order of the API server. */
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
