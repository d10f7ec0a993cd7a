import { applyPatch, type Operation } from "rfc6902";
import type { ApiResponse, Stream } from "../../../src/cluster/client/client.ts";
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import { isBeingDeleted, nameOf, namespaceOf } from "../../../src/core/kubernetes/object.ts";
import { atPointer } from "../../../src/core/path.ts";
import { Admission, type Attributes, type CallWebhook, type UserInfo } from "./admission.ts";
import { discoveryDocument } from "./discovery.ts";
import { type Writer, withApply, withUpdate } from "./managed-fields.ts";
import {
  continueToken,
  parseResourcePath,
  type ResourcePath,
  readContinueToken,
  selectorsOf,
  versionIn,
} from "./requests.ts";
import { type Resource, servedResources, storedName } from "./resources.ts";
import {
  alreadyExists,
  applyConflict,
  badRequest,
  conflict,
  expired,
  forbidden,
  invalid,
  noSuchResource,
  notFound,
  qualified,
  Refusal,
  refusal,
  tooLargeVersion,
} from "./status.ts";
import { revisionOf, type Store, textOf } from "./store.ts";
import {
  decoded,
  ignoredFields,
  initialOf,
  isLastFinalizerGone,
  isSameState,
  prepareCreate,
  prepareUpdate,
} from "./strategies.ts";
import { Watch } from "./watch.ts";

/** A request, after authentication. */
export interface ApiRequest {
  readonly method: string;
  /** With its query. */
  readonly path: string;
  readonly body?: Json | undefined;
  /** @default application/json */
  readonly contentType?: string | undefined;
  readonly accept?: string | undefined;
  /** @default an administrator */
  readonly user?: UserInfo | undefined;
}

export interface ApiServerOptions {
  /** Milliseconds since 1970, by this server's clock. */
  readonly now: () => number;
  /** From 0 to 1, for uids and generated names. */
  readonly random: () => number;
  /** Runs a function later: timeouts, bookmarks, and the delay of the watch cache. */
  readonly schedule: (delayMs: number, run: () => void) => unknown;
  /**
   * Milliseconds until a write to the store is in this server's watch cache, which answers watches, reads with
   * resourceVersion=0, and what the server itself follows: webhook configurations, namespaces and
   * CustomResourceDefinitions. Writes keep their order.
   * @default immediately
   */
  readonly lag?: () => number;
  /** @default every call fails */
  readonly callWebhook?: CallWebhook;
  /** Milliseconds between the admission of a new object and its write. @default none */
  readonly slowMs?: (resource: string) => number;
  /** The most items of a page, if the client asks for pages. @default as many as it asks for */
  readonly pageSize?: number;
  /** @default true */
  readonly streamsLists?: boolean;
}

const ADMIN: UserInfo = { username: "admin", groups: ["system:masters", "system:authenticated"] };

/** How long a read waits for the watch cache to reach its resourceVersion. */
const FRESH_MS = 3_000;

/** The server repeats a change that lost a race this often, if the client did not name a resourceVersion. */
const ATTEMPTS = 5;

/** The longest watch without timeoutSeconds; the real server chooses between 30 and 60 minutes. */
const WATCH_MS = 1_800_000;

/** One write, parsed. */
interface Write extends ResourcePath {
  readonly user: UserInfo;
  readonly manager: string;
  readonly dryRun: boolean;
  readonly warnings: string[];
}

/** What a PUT or PATCH makes of the stored object. Throws a Refusal. */
type Change = (live: JsonObject | undefined) => JsonObject;

/** One API server over a store, in memory: deterministic, and without authentication and authorization. */
export class ApiServer {
  readonly #store: Store;
  readonly #options: ApiServerOptions;
  readonly #admission: Admission;
  readonly #watches = new Set<Watch>();
  readonly #waiting = new Set<() => void>();
  /** The watch cache has the store's state of this revision. */
  #seen: number;
  /** The watch cache has no events before this revision. */
  #oldest: number;
  /** As of the last definition that this server has seen. */
  #served: readonly Resource[] | undefined;

  constructor(store: Store, options: ApiServerOptions) {
    this.#store = store;
    this.#options = options;
    this.#seen = store.revision;
    this.#oldest = store.revision;
    this.#admission = new Admission({
      view: {
        list: (resource) => store.list(resource, this.#seen).map(({ object }) => object),
        namespace: (name) => this.#namespace(name),
        ofKind: (apiVersion, kind) => this.#ofKind(apiVersion, kind),
      },
      call: options.callWebhook,
      schedule: options.schedule,
      uid: () => this.#uid(),
    });
    const { lag = () => 0, schedule } = options;
    store.subscribe(({ revision }) => {
      const delayMs = lag();
      if (delayMs <= 0) this.#advance(revision);
      else if (Number.isFinite(delayMs)) schedule(delayMs, () => this.#advance(revision));
    });
  }

  /** Ends all watches. The new watch cache has the current state and no history. */
  restart(): void {
    for (const watch of this.#watches) watch.end();
    this.#advance(this.#store.revision);
    this.#oldest = this.#seen;
    this.#served = undefined;
  }

  /** Forgets events before a revision, as a full watch cache does. @default all */
  forget(revision = this.#seen): void {
    this.#oldest = Math.max(this.#oldest, revision);
  }

  async handle(request: ApiRequest): Promise<ApiResponse> {
    const warnings: string[] = [];
    try {
      const { status, body } = await this.#serve(request, warnings);
      return this.#respond(status, body, warnings);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return this.#respond(error.code, error.body, warnings, error.headers);
    }
  }

  /** A watch, or a streaming list. */
  open(request: ApiRequest): Stream {
    try {
      return this.#watch(parseResourcePath(this.#url(request), this.#resources()));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      const { status, headers, text } = this.#respond(error.code, error.body, [], error.headers);
      return { status, headers, lines: only(text), close: () => undefined };
    }
  }

  #url({ path }: ApiRequest): URL {
    return new URL(path, "https://api.invalid");
  }

  #respond(
    status: number,
    body: Json,
    warnings: readonly string[],
    more: Readonly<Record<string, string>> = {},
  ): ApiResponse {
    const isText = typeof body === "string";
    const headers = {
      "content-type": isText ? "text/plain; charset=utf-8" : "application/json",
      date: new Date(this.#options.now()).toUTCString(),
      ...(warnings.length === 0
        ? {}
        : { warning: [...new Set(warnings)].map((one) => `299 - ${JSON.stringify(one)}`).join(", ") }),
      ...more,
    };
    return {
      status,
      headers,
      body: isText ? undefined : body,
      get text() {
        return isText ? body : textOf(body as JsonObject);
      },
    };
  }

  async #serve(request: ApiRequest, warnings: string[]): Promise<{ status: number; body: Json }> {
    const url = this.#url(request);
    const { method, user = ADMIN } = request;
    const served = this.#resources();
    const document = discoveryDocument(url.pathname, served, "v1.37.0");
    if (document !== undefined) return { status: 200, body: document };
    if (/^\/apis\/authorization\.k8s\.io\/v1\/subjectaccessreviews$/.test(url.pathname) && method === "POST")
      return { status: 201, body: this.#accessReview(request.body) };
    const path = parseResourcePath(url, served);
    const { resource, name, subresource, query } = path;
    if (subresource !== "") checkSubresource(path);
    if (method === "GET" && name === "") return { status: 200, body: await this.#list(path, request.accept) };
    if (method === "GET") return { status: 200, body: await this.#get(path, request.accept) };
    const dryRun = query.get("dryRun") ?? "";
    if (dryRun !== "" && dryRun !== "All")
      throw invalid({ group: "meta.k8s.io", resource: "", kind: `${method}Options` }, "", {
        field: "dryRun",
        message: "Unsupported value",
      });
    const manager = query.get("fieldManager") ?? "unknown";
    const write: Write = { ...path, user, manager, dryRun: dryRun !== "", warnings };
    // A copy without undefined fields: the client keeps its object.
    const body = request.body === undefined ? undefined : (JSON.parse(JSON.stringify(request.body)) as Json);
    if (method === "POST" && subresource === "binding") return this.#bind(write, asObject(body));
    if (method === "POST" && name === "")
      return { status: 201, body: await this.#create(write, asObject(body)) };
    if (method === "PUT" && name !== "") return this.#put(write, asObject(body));
    if (method === "PATCH" && name !== "") return this.#patch(write, body ?? null, request.contentType ?? "");
    if (method === "DELETE" && name !== "") return { status: 200, body: await this.#delete(write, body) };
    throw refusal(
      405,
      "MethodNotAllowed",
      `the server does not allow this method on the requested resource`,
      {
        kind: resource.resource,
      },
    );
  }

  // What this server has seen.

  #advance(revision: number): void {
    if (revision <= this.#seen) return;
    const events = this.#store.eventsAfter(this.#seen).filter((one) => one.revision <= revision);
    this.#seen = revision;
    if (events.some(({ resource }) => resource === DEFINITIONS)) this.#served = undefined;
    for (const watch of [...this.#watches]) watch.advance(events, revision);
    for (const check of [...this.#waiting]) check();
  }

  /** Waits until the watch cache has a revision. */
  async #fresh(revision: number): Promise<void> {
    if (this.#seen >= revision) return;
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const check = (): void => {
      if (this.#seen >= revision) resolve(true);
    };
    this.#waiting.add(check);
    this.#options.schedule(FRESH_MS, () => resolve(false));
    const isFresh = await promise;
    this.#waiting.delete(check);
    if (!isFresh) throw tooLargeVersion(revision, this.#seen);
  }

  #resources(): readonly Resource[] {
    this.#served ??= servedResources(this.#store, this.#seen);
    return this.#served;
  }

  /** As the server's informer has it; a namespace that is not there yet is looked up. */
  #namespace(name: string): JsonObject | undefined {
    return this.#store.get("namespaces", name, this.#seen) ?? this.#store.get("namespaces", name);
  }

  #ofKind(apiVersion: string, kind: string): readonly JsonObject[] {
    const resource = this.#resources().find(
      (one) =>
        one.kind === kind && (one.group === "" ? one.version : `${one.group}/${one.version}`) === apiVersion,
    );
    if (resource === undefined) return [];
    return this.#store.list(storedName(resource), this.#seen).map(({ object }) => object);
  }

  // Reads.

  async #get(path: ResourcePath, accept: string | undefined): Promise<Json> {
    const { resource, query } = path;
    const version = versionIn(query);
    if (version !== undefined) await this.#fresh(version);
    const revision = version === undefined ? this.#store.revision : this.#seen;
    const object = this.#store.get(storedName(resource), keyOf(path), revision);
    if (object === undefined) throw notFound(resource, path.name);
    return presented(inVersion(resource, object), accept);
  }

  async #list(path: ResourcePath, accept: string | undefined): Promise<Json> {
    const { resource, namespace, query } = path;
    const selects = selectorsOf(path);
    const token = query.get("continue") ?? "";
    const { pageSize = Number.POSITIVE_INFINITY } = this.#options;
    const limit = Math.min(Number(query.get("limit") ?? 0), pageSize);
    const match = query.get("resourceVersionMatch");
    const version = versionIn(query);
    if (match !== null && version === undefined)
      throw invalid(LIST_OPTIONS, "", {
        field: "resourceVersionMatch",
        message: "Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided",
        reason: "FieldValueForbidden",
      });
    if (token !== "" && match !== null)
      throw invalid(LIST_OPTIONS, "", {
        field: "resourceVersionMatch",
        message: "Forbidden: resourceVersionMatch is forbidden when continue is provided",
        reason: "FieldValueForbidden",
      });
    if (token !== "" && version !== undefined && version !== 0)
      throw badRequest("specifying resource version is not allowed when using continue");
    const isExact =
      match === "Exact" || (version !== undefined && version > 0 && limit > 0 && match === null);
    if (match === "Exact" && version === 0)
      throw invalid(LIST_OPTIONS, "", {
        field: "resourceVersionMatch",
        message: 'Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        reason: "FieldValueForbidden",
      });
    const from = token === "" ? undefined : readContinueToken(token);
    let revision = this.#store.revision;
    if (from !== undefined) revision = this.#continued(from);
    else if (isExact) revision = this.#exact(version ?? 0);
    else if (version !== undefined) {
      await this.#fresh(version);
      revision = this.#seen;
    }
    const all = this.#store
      .list(storedName(resource), revision)
      .filter(({ key }) => namespace === "" || key.startsWith(`${namespace}/`))
      .filter(({ key }) => from === undefined || key >= from.start)
      .filter(({ object }) => selects?.(object) ?? true);
    const isPaged = limit > 0 && all.length > limit && !(version === 0 && from === undefined);
    const page = isPaged ? all.slice(0, limit) : all;
    const next = { rv: revision, start: `${page.at(-1)?.key ?? ""}\0` };
    const remaining = selects === undefined ? { remainingItemCount: all.length - page.length } : {};
    const metadata = {
      resourceVersion: String(revision),
      // Lists of custom resources have it always.
      ...(isPaged
        ? { continue: continueToken(next), ...remaining }
        : resource.custom
          ? { continue: "" }
          : {}),
    };
    const items = page.map(({ object }) => listed(resource, inVersion(resource, object)));
    const list = { kind: `${resource.kind}List`, apiVersion: apiVersionOf(resource), metadata, items };
    return presentedList(list, accept);
  }

  #continued({ rv, start }: { rv: number; start: string }): number {
    if (rv < 0) return this.#store.revision;
    if (rv >= this.#store.compacted) return rv;
    const message =
      "The provided continue parameter is too old to display a consistent list result. You can start a new list without the continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the time the first chunk was returned and now may show up in the list.";
    throw expired(message, continueToken({ rv: -1, start }));
  }

  #exact(version: number): number {
    if (version > this.#store.revision) throw tooLargeVersion(version, this.#store.revision);
    if (version < this.#store.compacted)
      throw expired("The provided resource version is too old to display a consistent list result");
    return version;
  }

  #watch(path: ResourcePath): Stream {
    const { resource, namespace, name, query, subresource } = path;
    if (name !== "" || subresource !== "") throw noSuchResource();
    const selects = selectorsOf(path);
    const bookmarks = query.get("allowWatchBookmarks") === "true";
    const streams = query.get("sendInitialEvents") === "true";
    const match = query.get("resourceVersionMatch");
    if (this.#options.streamsLists === false && query.has("sendInitialEvents"))
      throw invalid(LIST_OPTIONS, "", {
        field: "sendInitialEvents",
        message:
          "Forbidden: sendInitialEvents is forbidden for watch unless the WatchList feature gate is enabled",
        reason: "FieldValueForbidden",
      });
    if (streams && match !== "NotOlderThan")
      throw invalid(LIST_OPTIONS, "", {
        field: "resourceVersionMatch",
        message: "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
        reason: "FieldValueForbidden",
      });
    if (!query.has("sendInitialEvents") && match !== null)
      throw invalid(LIST_OPTIONS, "", {
        field: "resourceVersionMatch",
        message:
          "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
        reason: "FieldValueForbidden",
      });
    const version = versionIn(query, () => refusal(500, "", "invalid resource version"));
    const seconds = Number(query.get("timeoutSeconds") ?? 0);
    const { schedule } = this.#options;
    const startsWithState = streams || version === undefined || version === 0;
    const watch: Watch = new Watch(
      {
        resource: storedName(resource),
        namespace,
        selects,
        convert: (object) => inVersion(resource, object),
        bookmarks,
        bookmark: () => ({ kind: resource.kind, apiVersion: apiVersionOf(resource) }),
        timeoutMs: seconds > 0 ? seconds * 1_000 : WATCH_MS,
        schedule,
        onEnd: () => this.#watches.delete(watch),
      },
      startsWithState ? this.#seen : version,
    );
    const headers = { "content-type": "application/json", date: new Date(this.#options.now()).toUTCString() };
    if (startsWithState) {
      const objects = this.#store
        .list(storedName(resource), this.#seen)
        .filter(({ key }) => namespace === "" || key.startsWith(`${namespace}/`))
        .filter(({ object }) => selects?.(object) ?? true);
      const newest = version === undefined || version === 0 ? this.#store.revision : version;
      watch.sendInitial(
        objects.map(({ object }) => object),
        streams ? (version === 0 ? this.#seen : newest) : undefined,
      );
    } else if (version < Math.max(this.#oldest, this.#store.compacted)) {
      const { body } = expired(`too old resource version: ${version} (${this.#oldest})`);
      watch.fail(body as JsonObject);
      return watch.stream(headers);
    }
    this.#watches.add(watch);
    watch.advance(
      this.#store.eventsAfter(version ?? this.#seen).filter((one) => one.revision <= this.#seen),
      this.#seen,
    );
    return watch.stream(headers);
  }

  #accessReview(body: Json | undefined): JsonObject {
    const spec = at(body, "spec");
    return {
      apiVersion: "authorization.k8s.io/v1",
      kind: "SubjectAccessReview",
      metadata: {},
      spec: spec ?? {},
      status: { allowed: true },
    };
  }

  // Writes.

  async #create(write: Write, body: JsonObject): Promise<JsonObject> {
    const { resource, namespace, manager, dryRun, user } = write;
    const object = this.#decode(write, body);
    if (stringAt(object, "metadata", "resourceVersion") !== undefined)
      throw refusal(500, "", "resourceVersion should not be set on objects to be created");
    const updated = withUpdate(undefined, object, this.#writer(write, manager));
    const prepared = await this.#admitCreate(write, updated, "CreateOptions");
    if (dryRun) {
      if (this.#store.get(storedName(resource), keyIn(namespace, nameOf(prepared))) !== undefined)
        throw alreadyExists(resource, nameOf(prepared));
      return inVersion(resource, prepared);
    }
    const slowMs = this.#options.slowMs?.(storedName(resource)) ?? 0;
    if (slowMs > 0) await new Promise<void>((resolve) => this.#options.schedule(slowMs, resolve));
    const key = keyIn(namespace, nameOf(prepared));
    const stored = this.#store.write(storedName(resource), key, prepared, 0, user.username);
    if (stored === "conflict") throw alreadyExists(resource, nameOf(prepared));
    return inVersion(resource, stored);
  }

  /** A new object through admission, as it is stored. */
  async #admitCreate(write: Write, object: JsonObject, options: string): Promise<JsonObject> {
    const { resource, warnings, namespace } = write;
    this.#checkNamespace(write, nameOf(object));
    const attributes = this.#attributes(write, "CREATE", object, undefined, options);
    const mutated = (await this.#admission.mutate(attributes, warnings)) ?? object;
    const uid = this.#uid();
    const named = this.#withName(mutated);
    const prepared = prepareCreate(resource, decoded(resource, named), { uid, time: this.#time() });
    await this.#admission.validate({ ...attributes, name: nameOf(prepared), object: prepared }, warnings);
    if (namespaceOf(prepared) !== namespace) throw badRequest("the namespace of the object was changed");
    return prepared;
  }

  /** Creation in a namespace that does not exist, or is being deleted, is refused. */
  #checkNamespace({ resource, namespace }: Write, name: string): void {
    if (!resource.namespaced) return;
    const found = this.#namespace(namespace);
    if (found === undefined)
      throw notFound({ group: "", resource: "namespaces", kind: "Namespace" }, namespace);
    if (!isBeingDeleted(found) && stringAt(found, "status", "phase") !== "Terminating") return;
    const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
    const message = `namespace ${namespace} is being terminated`;
    throw forbidden(resource, name, why, [
      { reason: "NamespaceTerminating", message, field: "metadata.namespace" },
    ]);
  }

  async #put(write: Write, body: JsonObject): Promise<{ status: number; body: Json }> {
    const { resource, name } = write;
    const object = this.#decode(write, body);
    if (nameOf(object) === "")
      throw badRequest(`the name of the object (based on URL) was undeterminable: name must be provided`);
    if (nameOf(object) !== name)
      throw badRequest(
        `the name of the object (${nameOf(object)}) does not match the name on the URL (${name})`,
      );
    const writer = this.#writer(write, write.manager);
    const creates = resource.createOnUpdate && write.subresource === "";
    const uid = stringAt(object, "metadata", "uid");
    return this.#change(
      write,
      creates,
      (live) => {
        checkPreconditions(resource, live, { uid }, name);
        return withUpdate(live, object, writer);
      },
      !resource.unconditionalUpdate,
    );
  }

  async #patch(write: Write, body: Json, contentType: string): Promise<{ status: number; body: Json }> {
    const { resource, manager } = write;
    const writer = this.#writer(write, manager);
    switch (contentType) {
      case "application/json-patch+json":
        return this.#change(write, false, (live = {}) =>
          withUpdate(live, this.#decode(write, jsonPatched(inVersion(resource, live), body)), writer),
        );
      case "application/merge-patch+json":
        return this.#change(write, false, (live = {}) =>
          withUpdate(
            live,
            this.#decode(write, asObject(mergePatched(inVersion(resource, live), body))),
            writer,
          ),
        );
      case "application/apply-patch+yaml":
        return this.#change(write, write.subresource === "", (live) =>
          this.#applied(write, live, asObject(body), writer),
        );
      default:
        throw refusal(415, "UnsupportedMediaType", "the body of the request was in an unknown format", {});
    }
  }

  #applied(write: Write, live: JsonObject | undefined, body: JsonObject, writer: Writer): JsonObject {
    const { query, resource } = write;
    if (!query.has("fieldManager"))
      throw invalid({ group: "meta.k8s.io", resource: "", kind: "PatchOptions" }, "", {
        field: "fieldManager",
        message: "Required value: is required for apply patch",
        reason: "FieldValueRequired",
      });
    if (listAt(body, "metadata", "managedFields").length > 0)
      throw badRequest("metadata.managedFields must be nil");
    this.#checkType(write, body);
    const result = withApply(live, body, writer, query.get("force") === "true");
    if ("conflicts" in result) throw applyConflict(result.conflicts);
    const object = resource.custom ? withoutNull(resource, write.name, result.object) : result.object;
    const sent = stringAt(body, "metadata", "resourceVersion");
    const resourceVersion = sent ?? stringAt(live, "metadata", "resourceVersion");
    const metadata = { ...(object["metadata"] as JsonObject), name: write.name };
    return this.#decode(write, {
      ...object,
      metadata: { ...metadata, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    });
  }

  /** Reads, changes and writes an object; again if another write came in between and the client allows it. */
  async #change(
    write: Write,
    creates: boolean,
    change: Change,
    needsVersion = false,
  ): Promise<{ status: number; body: Json }> {
    const { resource, name, dryRun, warnings, user, subresource } = write;
    const collection = storedName(resource);
    const key = keyOf(write);
    for (let attempt = 1; ; attempt++) {
      const live = this.#store.get(collection, key);
      if (live === undefined && !creates) throw notFound(resource, name);
      const wanted = change(live);
      const version = stringAt(wanted, "metadata", "resourceVersion");
      if (live === undefined) {
        const created = await this.#admitCreate(write, withoutVersion(wanted), "CreateOptions");
        // A resourceVersion does not prevent the creation, and a dry run returns it.
        if (dryRun) return { status: 201, body: inVersion(resource, withVersion(created, version)) };
        const stored = this.#store.write(collection, key, created, 0, user.username);
        if (stored === "conflict") continue;
        return { status: 201, body: inVersion(resource, stored) };
      }
      if (version === undefined && needsVersion)
        throw invalid({ ...resource, kind: resource.resource }, name, {
          field: "metadata.resourceVersion",
          message: "Invalid value: 0: must be specified for an update",
        });
      if (version !== undefined && Number(version) !== revisionOf(live)) throw conflict(resource, name);
      const attributes = this.#attributes(write, "UPDATE", wanted, live, "UpdateOptions");
      const mutated = decoded(resource, (await this.#admission.mutate(attributes, warnings)) ?? wanted);
      const prepared = prepareUpdate(resource, subresource, live, mutated);
      await this.#admission.validate({ ...attributes, object: withVersionOf(prepared, live) }, warnings);
      if (dryRun) return { status: 200, body: inVersion(resource, withVersionOf(prepared, live)) };
      if (isSameState(live, prepared)) {
        if (this.#store.get(collection, key) === live)
          return { status: 200, body: inVersion(resource, live) };
      } else {
        const isGone = isLastFinalizerGone(resource, prepared);
        const stored = this.#store.write(
          collection,
          key,
          isGone ? undefined : prepared,
          revisionOf(live),
          user.username,
        );
        if (stored !== "conflict")
          return { status: 200, body: inVersion(resource, isGone ? withVersionOf(prepared, live) : stored) };
      }
      // A client that named a version gets its conflict by the next attempt.
      if (attempt === ATTEMPTS) throw conflict(resource, name);
    }
  }

  async #bind(write: Write, body: JsonObject): Promise<{ status: number; body: Json }> {
    const { resource, namespace, name, warnings, user, dryRun } = write;
    const pod = this.#store.get("pods", keyOf(write));
    if (pod === undefined) throw notFound(resource, name);
    const attributes = this.#attributes(
      write,
      "CREATE",
      { apiVersion: "v1", kind: "Binding", ...body },
      undefined,
      "CreateOptions",
    );
    const asBinding = { ...attributes, kind: "Binding" };
    const mutated = (await this.#admission.mutate(asBinding, warnings)) ?? body;
    await this.#admission.validate({ ...asBinding, object: mutated }, warnings);
    const live = this.#store.get("pods", keyIn(namespace, name));
    if (live === undefined) throw notFound(resource, name);
    const binding = { ...resource, resource: "pods/binding" };
    const assigned = stringAt(live, "spec", "nodeName") ?? "";
    if (isBeingDeleted(live))
      throw conflict(binding, name, `pod ${name} is being deleted, cannot be assigned to a host`);
    if (assigned !== "")
      throw conflict(binding, name, `pod ${name} is already assigned to node ${JSON.stringify(assigned)}`);
    const spec = { ...(live["spec"] as JsonObject), nodeName: stringAt(mutated, "target", "name") ?? "" };
    if (!dryRun) this.#store.write("pods", keyOf(write), { ...live, spec }, revisionOf(live), user.username);
    return {
      status: 201,
      body: { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", code: 201 },
    };
  }

  async #delete(write: Write, body: Json | undefined): Promise<Json> {
    const { resource, name, warnings, user } = write;
    const collection = storedName(resource);
    const isDryRun = body === undefined ? write.dryRun : listAt(body, "dryRun").includes("All");
    const dryRun = { ...write, dryRun: isDryRun };
    const policy = stringAt(body, "propagationPolicy") ?? write.query.get("propagationPolicy") ?? undefined;
    for (let attempt = 1; ; attempt++) {
      const live = this.#store.get(collection, keyOf(write));
      if (live === undefined) throw notFound(resource, name);
      checkPreconditions({ ...resource, resource: resource.kind }, live, at(body, "preconditions"), name);
      if (collection === "namespaces" && ["default", "kube-system", "kube-public"].includes(name))
        throw forbidden(resource, name, "this namespace may not be deleted");
      const { options, ...attributes } = this.#attributes(dryRun, "DELETE", undefined, live, "DeleteOptions");
      const deletion = { ...attributes, options: { ...(isObject(body) ? body : {}), ...options } };
      await this.#admission.mutate(deletion, warnings);
      await this.#admission.validate(deletion, warnings);
      const marked = this.#marked(resource, live, policy, at(body, "gracePeriodSeconds"));
      if (isDryRun) return marked === undefined ? deleted(resource, live) : inVersion(resource, marked);
      if (marked === live) return inVersion(resource, live);
      const stored = this.#store.write(collection, keyOf(write), marked, revisionOf(live), user.username);
      if (stored !== "conflict")
        return marked === undefined ? deleted(resource, live) : inVersion(resource, stored);
      if (attempt === ATTEMPTS) throw conflict(resource, name);
    }
  }

  /** The object that waits for its finalizers or its grace period; `undefined` if it goes at once. */
  #marked(
    resource: Resource,
    live: JsonObject,
    policy: string | undefined,
    grace: Json | undefined,
  ): JsonObject | undefined {
    const before = live["metadata"] as JsonObject;
    const others = listAt(before, "finalizers").filter(
      (one) => one !== "orphan" && one !== "foregroundDeletion",
    );
    const own = policy === "Orphan" ? ["orphan"] : policy === "Foreground" ? ["foregroundDeletion"] : [];
    const finalizers = policy === undefined ? listAt(before, "finalizers") : [...others, ...own];
    const isPod = storedName(resource) === "pods";
    const waits = isPod && (stringAt(live, "spec", "nodeName") ?? "") !== "" && !isEnded(live);
    const graceSeconds = waits ? Number(grace ?? at(live, "spec", "terminationGracePeriodSeconds") ?? 30) : 0;
    const isNamespace =
      storedName(resource) === "namespaces" && listAt(live, "spec", "finalizers").length > 0;
    if (finalizers.length === 0 && graceSeconds === 0 && !isNamespace) return undefined;
    if (isBeingDeleted(live)) {
      const left = Number(before["deletionGracePeriodSeconds"] ?? 0);
      if (graceSeconds >= left) return live;
      return { ...live, metadata: { ...before, deletionGracePeriodSeconds: graceSeconds } };
    }
    const { generation } = before;
    const { finalizers: _finalizers, ...kept } = before;
    const metadata = {
      ...kept,
      ...(finalizers.length === 0 ? {} : { finalizers }),
      deletionTimestamp: this.#time(graceSeconds * 1_000),
      ...(isNamespace ? {} : { deletionGracePeriodSeconds: graceSeconds }),
      ...(typeof generation === "number" && generation > 0 ? { generation: generation + 1 } : {}),
    };
    const phase = { ...(live["status"] as JsonObject | undefined), phase: "Terminating" };
    return { ...live, metadata, ...(isNamespace ? { status: phase } : {}) };
  }

  #attributes(
    write: Write,
    operation: Attributes["operation"],
    object: JsonObject | undefined,
    oldObject: JsonObject | undefined,
    options: string,
  ): Attributes {
    const { resource, subresource, namespace, user, dryRun, query } = write;
    const manager = query.get("fieldManager");
    const isNamespace = storedName(resource) === "namespaces";
    const name = write.name === "" ? nameOf(object ?? {}) : write.name;
    return {
      operation,
      resource,
      subresource,
      kind: resource.kind,
      namespace: isNamespace ? name : namespace,
      name,
      object: object === undefined ? undefined : inVersion(resource, object),
      oldObject: oldObject === undefined ? undefined : inVersion(resource, oldObject),
      options: {
        kind: options,
        apiVersion: "meta.k8s.io/v1",
        ...(dryRun ? { dryRun: ["All"] } : {}),
        ...(manager === null ? {} : { fieldManager: manager }),
      },
      dryRun,
      user,
    };
  }

  #decode(write: Write, body: JsonObject): JsonObject {
    const { resource, namespace } = write;
    this.#checkType(write, body);
    const metadata = isObject(body["metadata"]) ? body["metadata"] : {};
    const sent = stringAt(metadata, "namespace") ?? "";
    if (sent !== "" && sent !== namespace)
      throw badRequest(
        "the namespace of the provided object does not match the namespace sent on the request",
      );
    const type = { apiVersion: apiVersionOf(resource), kind: resource.kind };
    const placed = resource.namespaced ? { ...metadata, namespace } : metadata;
    return decoded(resource, { ...body, ...type, metadata: placed });
  }

  #checkType({ resource }: Write, body: JsonObject): void {
    const apiVersion = stringAt(body, "apiVersion") ?? apiVersionOf(resource);
    const kind = stringAt(body, "kind") ?? resource.kind;
    if (apiVersion !== apiVersionOf(resource))
      throw badRequest(
        `the API version in the data (${apiVersion}) does not match the expected API version (${apiVersionOf(resource)})`,
      );
    if (kind !== resource.kind)
      throw badRequest(`the kind in the data (${kind}) does not match ${qualified(resource)}`);
  }

  #writer({ resource, subresource }: Write, manager: string): Writer {
    return {
      manager,
      apiVersion: apiVersionOf(resource),
      subresource,
      time: this.#time(),
      shape: resource.shape,
      ignores: ignoredFields(resource, subresource),
      initial: initialOf(resource),
    };
  }

  #withName(object: JsonObject): JsonObject {
    const prefix = stringAt(object, "metadata", "generateName") ?? "";
    if (nameOf(object) !== "" || prefix === "") return object;
    const letters = "bcdfghjklmnpqrstvwxz2456789";
    const end = Array.from({ length: 5 }, () => letters[Math.floor(this.#options.random() * letters.length)]);
    return { ...object, metadata: { ...(object["metadata"] as JsonObject), name: prefix + end.join("") } };
  }

  #time(laterMs = 0): string {
    return new Date(this.#options.now() + laterMs).toISOString().replace(/\.\d+Z$/, "Z");
  }

  #uid(): string {
    const digits = Array.from({ length: 32 }, () =>
      Math.floor(this.#options.random() * 16).toString(16),
    ).join("");
    return digits.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
  }
}

const DEFINITIONS = "customresourcedefinitions.apiextensions.k8s.io";

const LIST_OPTIONS = { group: "meta.k8s.io", resource: "", kind: "ListOptions" };

const SUBRESOURCES: Readonly<Record<string, readonly string[]>> = {
  namespaces: ["finalize"],
  pods: ["binding"],
};

function checkSubresource({ resource, subresource, name }: ResourcePath): void {
  const known = [...(resource.status ? ["status"] : []), ...(SUBRESOURCES[storedName(resource)] ?? [])];
  if (known.includes(subresource)) return;
  throw resource.custom ? notFound(resource, name) : noSuchResource();
}

function keyIn(namespace: string, name: string): string {
  return namespace === "" ? name : `${namespace}/${name}`;
}

function keyOf({ namespace, name }: Pick<ResourcePath, "namespace" | "name">): string {
  return keyIn(namespace, name);
}

function apiVersionOf({ group, version }: Resource): string {
  return group === "" ? version : `${group}/${version}`;
}

function inVersion(resource: Resource, object: JsonObject): JsonObject {
  const apiVersion = apiVersionOf(resource);
  return object["apiVersion"] === apiVersion ? object : { ...object, apiVersion };
}

/** Items of built-in kinds have no type of their own. */
function listed(resource: Resource, object: JsonObject): JsonObject {
  if (resource.custom) return object;
  const { apiVersion: _version, kind: _kind, ...item } = object;
  return item;
}

function presented(object: JsonObject, accept: string | undefined): JsonObject {
  if (accept?.includes("as=PartialObjectMetadata;") !== true) return object;
  return { kind: "PartialObjectMetadata", apiVersion: "meta.k8s.io/v1", metadata: object["metadata"] };
}

function presentedList(
  list: JsonObject & { items: readonly JsonObject[] },
  accept: string | undefined,
): JsonObject {
  if (accept?.includes("as=PartialObjectMetadataList") !== true) return list;
  const items = list.items.map((item) => ({ metadata: item["metadata"] }));
  return { ...list, kind: "PartialObjectMetadataList", apiVersion: "meta.k8s.io/v1", items };
}

function asObject(body: Json | undefined): JsonObject {
  if (!isObject(body)) throw badRequest("the object provided is unrecognized (must be of type Object)");
  return body;
}

function withoutVersion(object: JsonObject): JsonObject {
  const { resourceVersion: _version, ...metadata } = object["metadata"] as JsonObject;
  return { ...object, metadata };
}

function withVersionOf(object: JsonObject, live: JsonObject): JsonObject {
  return withVersion(object, String(revisionOf(live)));
}

function withVersion(object: JsonObject, resourceVersion: string | undefined): JsonObject {
  if (resourceVersion === undefined) return object;
  return { ...object, metadata: { ...(object["metadata"] as JsonObject), resourceVersion } };
}

function jsonPatched(object: JsonObject, patch: Json): JsonObject {
  if (!Array.isArray(patch))
    throw badRequest("error decoding patch: json: cannot unmarshal object into Go value");
  const copy = structuredClone(object);
  for (const operation of structuredClone(patch) as Operation[]) {
    // The API server's library lets a replacement add a key.
    const parent = atPointer(copy, operation.path.slice(0, operation.path.lastIndexOf("/")));
    const adds = operation.op === "replace" && isObject(parent);
    const [problem] = applyPatch(copy, [adds ? { ...operation, op: "add" } : operation]);
    if (problem !== null)
      throw refusal(422, "Invalid", "the server rejected our request due to an error in our request", {});
  }
  return copy;
}

/** A field that apply has emptied although a manager owns it: null, which the schema of a custom resource refuses. */
function withoutNull(resource: Resource, name: string, object: JsonObject): JsonObject {
  const nullIn = (value: Json | undefined, path: string): string | undefined => {
    if (value === null) return path;
    if (!isObject(value)) return undefined;
    for (const [key, one] of Object.entries(value)) {
      const found = nullIn(one, `${path}.${key}`);
      if (found !== undefined) return found;
    }
    return undefined;
  };
  const kept = Object.entries(object).filter(([, value]) => value !== null);
  for (const [key, value] of kept) {
    const field = key === "metadata" ? undefined : nullIn(value, key);
    const message = `Invalid value: "null": ${field} in body must not be null`;
    if (field !== undefined)
      throw invalid(resource, name, { field, message, reason: "FieldValueTypeInvalid" });
  }
  return Object.fromEntries(kept);
}

/** RFC 7386. */
function mergePatched(value: Json | undefined, patch: Json): Json {
  if (!isObject(patch)) return patch;
  const result: Record<string, Json> = { ...((isObject(value) ? value : {}) as Record<string, Json>) };
  for (const [name, one] of Object.entries(patch)) {
    if (one === null) delete result[name];
    else if (one !== undefined) result[name] = mergePatched(result[name], one);
  }
  return result;
}

function checkPreconditions(
  resource: Resource,
  live: JsonObject | undefined,
  preconditions: Json | undefined,
  name: string,
): void {
  for (const [field, text] of [
    ["uid", "UID"],
    ["resourceVersion", "ResourceVersion"],
  ] as const) {
    const wanted = stringAt(preconditions, field);
    const stored = stringAt(live, "metadata", field) ?? "";
    const why = `Precondition failed: ${text} in precondition: ${wanted}, ${text} in object meta: ${stored}`;
    if (wanted !== undefined && wanted !== stored) throw conflict(resource, name, why);
  }
}

function isEnded(pod: JsonObject): boolean {
  return ["Succeeded", "Failed"].includes(stringAt(pod, "status", "phase") ?? "");
}

function deleted(resource: Resource, live: JsonObject): JsonObject {
  // Some kinds return the object that was deleted.
  if (["pods", "serviceaccounts"].includes(storedName(resource))) return inVersion(resource, live);
  const { group, resource: kind } = resource;
  const details = {
    name: nameOf(live),
    ...(group === "" ? {} : { group }),
    kind,
    uid: stringAt(live, "metadata", "uid"),
  };
  return { kind: "Status", apiVersion: "v1", metadata: {}, status: "Success", details };
}

async function* only(text: string): AsyncGenerator<string> {
  yield text;
}
