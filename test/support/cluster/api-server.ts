import { setTimeout as later } from "node:timers/promises";
import {
  type ApiResponse,
  type Client,
  ConnectionError,
  type RequestOptions,
} from "../../../src/cluster/client/client.ts";
import type { ResourceResolver } from "../../../src/cluster/client/discovery.ts";
import { OBJECT_BYTES } from "../../../src/cluster/client/lines.ts";
import { TooLargeError } from "../../../src/cluster/client/response-body.ts";
import type { Deadline } from "../../../src/core/evaluate/source.ts";
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";

/** An API server in memory, for tests of writes: versions, conflicts, pages; no schemas and no watches. */

/** Replaces a response, breaks the connection with an error, or delays it. */
export type Fault = (
  method: string,
  path: string,
  options: RequestOptions,
) => ApiResponse | Error | undefined | Promise<ApiResponse | Error | undefined>;

export class TestApiServer {
  readonly objects = new Map<string, JsonObject>();
  /** Requests in order: `GET /api/v1/…`. */
  readonly asked: string[] = [];
  /** Methods and statuses: `PUT 409`. */
  readonly answered: string[] = [];
  readonly bodies: Json[] = [];
  fault: Fault = () => undefined;
  /** Resources that discovery does not list. */
  readonly unserved = new Set<string>();
  #version = 100;

  readonly client: Client = {
    server: "https://test.invalid",
    request: (method, path, options = {}) => this.#request(method, path, options),
    stream: () => Promise.reject(new Error("no streams here")),
    close: () => undefined,
  };

  /** Resources of `v1`, namespaced where a namespace is given. */
  readonly resources: ResourceResolver = {
    pathOf: async (resource, namespace, name, subresource) => {
      const scope = namespace === undefined || namespace === "" ? "" : `/namespaces/${namespace}`;
      return ["/api/v1", scope, `/${resource}`, name && `/${name}`, subresource && `/${subresource}`]
        .filter((part) => part !== undefined)
        .join("");
    },
    discover: async (resource) =>
      this.unserved.has(resource)
        ? undefined
        : { group: "", version: "v1", resource, namespaced: resource !== "nodes" },
  };

  put(path: string, object: JsonObject): JsonObject {
    const metadata = isObject(object["metadata"]) ? object["metadata"] : {};
    const name = path.slice(path.lastIndexOf("/") + 1);
    const resourceVersion = String(++this.#version);
    const stored = { ...object, metadata: { ...metadata, name, resourceVersion } };
    this.objects.set(path, stored);
    return stored;
  }

  count(entry: string): number {
    return this.answered.filter((one) => one === entry).length;
  }

  async #request(method: string, path: string, options: RequestOptions): Promise<ApiResponse> {
    this.asked.push(`${method} ${path}`);
    if (options.body !== undefined) this.bodies.push(options.body);
    const given = this.fault(method, path, options);
    // A round trip takes an iteration of the event loop.
    const fault = await Promise.race([given ?? later(0), gone(options.signal)]);
    if (fault instanceof Error) throw fault;
    const answer = fault ?? metadataOnly(this.#serve(method, path, options.body), options.accept);
    if (answer.text.length > (options.limitBytes ?? OBJECT_BYTES)) throw new TooLargeError("too large");
    this.answered.push(`${method} ${answer.status}`);
    return answer;
  }

  #serve(method: string, url: string, body: Json | undefined): ApiResponse {
    const { pathname: path, searchParams } = new URL(url, this.client.server);
    const stored = this.objects.get(path);
    const version = stringAt(body, "metadata", "resourceVersion");
    const current = stringAt(stored, "metadata", "resourceVersion");
    const name = path.slice(path.lastIndexOf("/") + 1);
    const object = isObject(body) ? body : {};
    if (method === "POST") {
      const made = `${path}/${stringAt(body, "metadata", "name") ?? ""}`;
      return this.objects.has(made) ? refuse(409, "AlreadyExists") : answerOf(201, this.put(made, object));
    }
    if (method === "GET" && stored === undefined && searchParams.size > 0)
      return this.#list(path, searchParams);
    const creates = method === "PATCH" && !Array.isArray(body);
    if (stored === undefined && !creates) return refuse(404, "NotFound", name);
    if (method === "GET") return answerOf(200, stored ?? null);
    if (method === "DELETE") {
      const wanted = stringAt(body, "preconditions", "resourceVersion");
      if (wanted !== undefined && wanted !== current) return refuse(409, "Conflict", name);
      this.objects.delete(path);
      return answerOf(200, {});
    }
    if (version !== undefined && version !== current) return refuse(409, "Conflict", name);
    return answerOf(200, this.put(path, method === "PUT" ? object : applied(stored, object)));
  }

  #list(path: string, query: URLSearchParams): ApiResponse {
    const all = [...this.objects].filter(([key]) => key.startsWith(`${path}/`)).map(([, object]) => object);
    const from = Number(query.get("continue") ?? 0);
    const to = from + Number(query.get("limit") ?? all.length);
    // As in the API server: an estimate only without a selector.
    const selects = query.has("labelSelector") || query.has("fieldSelector");
    const estimate = selects ? {} : { remainingItemCount: all.length - to };
    const resourceVersion = String(this.#version);
    const metadata = {
      resourceVersion,
      ...(to < all.length ? { continue: String(to), ...estimate } : {}),
    };
    return answerOf(200, { apiVersion: "v1", kind: "ThingList", metadata, items: all.slice(from, to) });
  }
}

/** Fields are replaced, but annotations are merged: those of other managers stay. */
function applied(stored: JsonObject | undefined, object: JsonObject): JsonObject {
  const theirs = at(stored, "metadata", "annotations");
  const { metadata } = object;
  if (!isObject(theirs) || !isObject(metadata)) return { ...stored, ...object };
  const annotations = { ...theirs, ...(metadata["annotations"] as JsonObject | undefined) };
  return { ...stored, ...object, metadata: { ...metadata, annotations } };
}

/** The response to a client that asks for PartialObjectMetadataList. */
function metadataOnly(answer: ApiResponse, accept: string | undefined): ApiResponse {
  if (accept?.includes("as=PartialObjectMetadataList") !== true || !isObject(answer.body)) return answer;
  const items = listAt(answer.body, "items").map((item) => ({
    metadata: isObject(item) ? item["metadata"] : {},
  }));
  return answerOf(200, { ...answer.body, kind: "PartialObjectMetadataList", items });
}

export function answerOf(status: number, body: Json, headers: Record<string, string> = {}): ApiResponse {
  return { status, headers, body, text: JSON.stringify(body) };
}

export function refuse(status: number, reason: string, name?: string, headers = {}): ApiResponse {
  const details = name === undefined ? {} : { details: { name } };
  const body = { kind: "Status", status: "Failure", reason, message: `refused: ${reason}`, ...details };
  return answerOf(status, body, headers);
}

/** The response for an unknown path. */
export const NO_SUCH_API: ApiResponse = {
  status: 404,
  headers: {},
  body: undefined,
  text: "404 page not found\n",
};

function gone(signal: AbortSignal | undefined): Promise<Error> {
  const error = new ConnectionError("canceled by the caller");
  if (signal?.aborted) return Promise.resolve(error);
  return new Promise((resolve) => signal?.addEventListener("abort", () => resolve(error), { once: true }));
}

/** A deadline that the test ends. */
export function testDeadline(ms = 60_000): Deadline & { readonly end: () => void } {
  const over = new AbortController();
  const until = performance.now() + ms;
  return {
    remaining: () => (over.signal.aborted ? 0 : until - performance.now()),
    signal: over.signal,
    end: () => over.abort(),
  };
}
