import fc from "fast-check";
import { isObject, type Json, type JsonObject, stringAt } from "../../../src/core/json.ts";
import { ApiServer, type ApiServerOptions } from "./api-server.ts";
import { Controllers } from "./controllers.ts";
import { Store } from "./store.ts";

/** Calls that are sent to the simulated API server and to a real one, and how their responses are compared. */

/** Simulated time: timers run while it passes. */
export class Clock {
  ms = Date.UTC(2026, 0, 1);
  readonly #timers: { at: number; run: () => void }[] = [];
  readonly schedule = (delayMs: number, run: () => void): void => {
    this.#timers.push({ at: this.ms + delayMs, run });
  };

  async pass(ms: number): Promise<void> {
    const end = this.ms + ms;
    for (;;) {
      await new Promise(setImmediate);
      const due = this.#timers.sort((a, b) => a.at - b.at)[0];
      if (due === undefined || due.at > end) break;
      this.#timers.shift();
      this.ms = due.at;
      due.run();
    }
    this.ms = end;
  }
}

/** A simulated API server with its own clock and random numbers. */
export function simulated(options: Partial<ApiServerOptions> = {}) {
  const clock = new Clock();
  const store = new Store();
  let seed = 1;
  const random = (): number => {
    seed = (seed * 16_807) % 2_147_483_647;
    return seed / 2_147_483_647;
  };
  const base = { now: () => clock.ms, random, schedule: clock.schedule };
  return { clock, store, base, server: new ApiServer(store, { ...base, ...options }) };
}

/**
 * A request. In its path and body, `@version`, `@older` and `@uid` stand for the newest resourceVersion, the one before
 * it, and the uid that the server has returned for the object of the path; `@object` for the object itself, with the
 * fields beside it; `@token` for the last continue token. `@uid:PATH` and `@version:PATH` are those of another object.
 */
export interface Call {
  readonly method: string;
  readonly path: string;
  readonly body?: Json;
  readonly type?: string;
  /** Repeats the request until the status is this one: the control plane needs time. */
  readonly until?: number;
  /** Compares the status alone, where controllers write the body as well. */
  readonly only?: "status";
  /** Opens a stream and reads this number of lines. */
  readonly lines?: number;
}

export interface Answer {
  readonly status: number;
  readonly body: Json | undefined;
}

interface Connection {
  readonly send: (call: Call) => Promise<Answer>;
  readonly watch: (
    path: string,
  ) => Promise<{ readonly lines: AsyncIterable<string>; readonly close: () => void }>;
  readonly wait: () => Promise<void>;
}

/** One API server as a history sees it: resolves references to its responses, and makes responses comparable. */
export class Side {
  readonly #connection: Connection;
  readonly #symbols = new Map<string, string>();
  readonly #objects = new Map<string, JsonObject[]>();
  #token = "";

  constructor(connection: Connection) {
    this.#connection = connection;
  }

  async call(call: Call): Promise<Json> {
    if (call.lines !== undefined) return this.#lines(this.#resolve(call.path, call) as string, call.lines);
    for (let attempt = 0; ; attempt++) {
      const answer = await this.#once(call);
      if (call.until === undefined || answer.status === call.until || attempt > 300) {
        this.#remember(call, answer.body);
        if (call.only === "status") return { status: answer.status };
        return { status: answer.status, body: this.normal(answer.body) ?? null };
      }
      await this.#connection.wait();
    }
  }

  /** The same server, as another history sees it. */
  fresh(): Side {
    return new Side(this.#connection);
  }

  /** Follows objects of a collection from now on. The result has their events until that of the last one. */
  async watch({ collection, names: followed }: KindOfCalls): Promise<() => Promise<Json[]>> {
    const { send, watch } = this.#connection;
    const { body } = await send({ method: "GET", path: `${collection}?limit=1` });
    const version = stringAt(body, "metadata", "resourceVersion") ?? "";
    const { lines, close } = await watch(`${collection}?watch=true&resourceVersion=${version}`);
    const last = lastName(followed);
    return async () => {
      const events: Json[] = [];
      for await (const line of lines) {
        const event = JSON.parse(line) as Json;
        const name = stringAt(event, "object", "metadata", "name") ?? "";
        if ([...followed, last].includes(name)) events.push(this.normal(event) ?? null);
        if (name === last) break;
      }
      close();
      return events;
    };
  }

  /** Versions, uids and times by the order in which they appeared; without texts that no client reads. */
  normal(value: Json | undefined, key = "", isList = false): Json | undefined {
    if (key === "resourceVersion" && isList) return "version of the list";
    if ((key === "resourceVersion" || key === "uid") && typeof value === "string")
      return this.#symbol(key, value);
    if (key === "continue") return value === "" ? "" : "token";
    if (key === "name" && typeof value === "string") return value.replace(GENERATED, "-generated");
    if (key === "message" || key === "gitVersion") return undefined;
    if (typeof value === "string" && /^\d{4}-\d\d-\d\dT[\d:.]+Z$/.test(value)) return "time";
    if (key === "managedFields" && Array.isArray(value)) {
      const entries = value.map((one: Json) => this.normal(one) ?? null);
      const named = (text: string): string => text.replace(UID, (uid) => this.#symbol("uid", uid));
      return entries.map((one) => named(JSON.stringify(one))).sort();
    }
    // The real server walks a map of managers.
    if (key === "causes" && Array.isArray(value))
      return value.map((one: Json) => JSON.stringify(this.normal(one))).sort();
    if (Array.isArray(value)) return value.map((one: Json) => this.normal(one) ?? null);
    if (!isObject(value)) return value;
    // The control plane creates it in each namespace.
    if (stringAt(value, "metadata", "name") === ROOT_CA) return ROOT_CA;
    const listed = stringAt(value, "kind")?.endsWith("List") === true;
    const parts = Object.entries(value)
      .map(
        ([name, one]) => [name, this.normal(one, name, isList || (name === "metadata" && listed))] as const,
      )
      .filter(([name, one]) => one !== undefined && name !== "time")
      .sort(([a], [b]) => (a < b ? -1 : 1));
    return Object.fromEntries(parts);
  }

  async #lines(path: string, count: number): Promise<Json> {
    const { lines, close } = await this.#connection.watch(path);
    const seen: Json[] = [];
    for await (const line of lines) {
      const event = JSON.parse(line) as Json;
      seen.push(this.normal(event, "", stringAt(event, "type") === "BOOKMARK") ?? null);
      if (seen.length === count) break;
    }
    close();
    return seen;
  }

  #symbol(key: string, value: string): string {
    const known = this.#symbols.get(value);
    if (known !== undefined) return known;
    const count = [...this.#symbols.values()].filter((one) => one.startsWith(key)).length;
    const symbol = `${key} ${count + 1}`;
    this.#symbols.set(value, symbol);
    return symbol;
  }

  async #once(call: Call): Promise<Answer> {
    const path = this.#resolve(call.path, call) as string;
    const body = call.body === undefined ? undefined : this.#resolve(call.body, call);
    return this.#connection.send({ ...call, path, ...(body === undefined ? {} : { body }) });
  }

  #resolve(value: Json, call: Call): Json {
    const [now, before] = this.#objects.get(objectOf(call)) ?? [];
    const versionOf = (object: JsonObject | undefined) =>
      stringAt(object, "metadata", "resourceVersion") ?? "1";
    if (value === "@version") return versionOf(now);
    if (value === "@older") return versionOf(before ?? now);
    if (value === "@uid") return stringAt(now, "metadata", "uid") ?? "none";
    const [, field, path = ""] =
      typeof value === "string" ? (/@(uid|version):([^?&]+)/.exec(value) ?? []) : [];
    if (typeof value === "string" && field !== undefined) {
      const other = this.#objects.get(path)?.[0];
      const found = field === "uid" ? stringAt(other, "metadata", "uid") : versionOf(other);
      return value.replace(`@${field}:${path}`, found ?? "none");
    }
    if (typeof value === "string")
      return value.replace("@version", versionOf(now)).replace("@token", encodeURIComponent(this.#token));
    if (Array.isArray(value)) return value.map((one: Json) => this.#resolve(one, call));
    if (!isObject(value)) return value;
    const parts = Object.entries(value).map(([name, one]) => [name, this.#resolve(one ?? null, call)]);
    const { "@object": base, ...rest } = Object.fromEntries(parts) as JsonObject;
    return base === undefined ? rest : { ...(now ?? (base as JsonObject)), ...rest };
  }

  #remember(call: Call, body: Json | undefined): void {
    const token = stringAt(body, "metadata", "continue");
    if (token !== undefined) this.#token = token;
    if (!isObject(body) || stringAt(body, "metadata", "resourceVersion") === undefined) return;
    if (stringAt(body, "kind")?.endsWith("List") === true) return;
    const key = objectOf({ ...call, body });
    const [now] = this.#objects.get(key) ?? [];
    const isSame =
      stringAt(now, "metadata", "resourceVersion") === stringAt(body, "metadata", "resourceVersion");
    if (!isSame) this.#objects.set(key, [body, ...(now === undefined ? [] : [now])]);
  }
}

/** The end of a generated name. */
const GENERATED = /-[bcdfghjklmnpqrstvwxz2456789]{5}$/;

const UID = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g;

/** The ConfigMap that the control plane creates in each namespace. */
export const ROOT_CA = "kube-root-ca.crt";

/** The path of the object that a call is about. */
function objectOf({ method, path, body }: Call): string {
  const [plain = ""] = path.split("?");
  const object = plain.replace(/\/(status|finalize)$/, "");
  return method === "POST" ? `${object}/${stringAt(body, "metadata", "name")}` : object;
}

/** The simulated server as a side, with the control plane's controllers. */
export function simulatedSide(made = simulated()): Side {
  new Controllers(made.store, made.server, { schedule: made.clock.schedule });
  return new Side({
    send: async ({ method, path, body, type }) => {
      const {
        status,
        body: answer,
        text,
      } = await made.server.handle({ method, path, body, contentType: type });
      return { status, body: answer ?? text };
    },
    watch: async (path) => made.server.open({ method: "GET", path }),
    wait: () => made.clock.pass(100),
  });
}

// Objects and calls at random.

export const MERGE = "application/merge-patch+json";
export const JSON_PATCH = "application/json-patch+json";
export const APPLY = "application/apply-patch+yaml";

/** A custom resource with a status, a list by keys and a set. */
export function thingDefinition(group: string): JsonObject {
  const item = { type: "object", required: ["name"], properties: { name: STRING, value: STRING } };
  const properties = {
    size: { type: "integer", default: 3 },
    note: STRING,
    tags: { type: "array", items: STRING, "x-kubernetes-list-type": "set" },
    parts: {
      type: "array",
      items: item,
      "x-kubernetes-list-type": "map",
      "x-kubernetes-list-map-keys": ["name"],
    },
    plain: { type: "array", items: STRING },
    marks: { type: "object", additionalProperties: STRING },
  };
  const status = { type: "object", properties: { ready: { type: "boolean" }, note: STRING } };
  const openAPIV3Schema = { type: "object", properties: { spec: { type: "object", properties }, status } };
  const version = {
    name: "v1",
    served: true,
    storage: true,
    schema: { openAPIV3Schema },
    subresources: { status: {} },
  };
  return {
    apiVersion: "apiextensions.k8s.io/v1",
    kind: "CustomResourceDefinition",
    metadata: { name: `things.${group}` },
    spec: {
      group,
      scope: "Namespaced",
      names: { plural: "things", singular: "thing", kind: "Thing", listKind: "ThingList" },
      versions: [version],
    },
  };
}

const STRING = { type: "string" };

/** Webhooks that match nothing. */
const webhooks = fc
  .uniqueArray(
    fc.record({
      name: fc.constantFrom("a.usher.dev", "b.usher.dev", "c.usher.dev"),
      failurePolicy: fc.constantFrom("Fail", "Ignore", undefined),
      timeoutSeconds: fc.constantFrom(5, 10, undefined),
    }),
    { selector: ({ name }) => name, minLength: 1, maxLength: 3 },
  )
  .map((list) => ({
    webhooks: list.map((one) =>
      defined({
        ...one,
        clientConfig: { service: { namespace: "usher-system", name: "usher" } },
        rules: [
          {
            apiGroups: ["none.usher.dev"],
            apiVersions: ["*"],
            operations: ["CREATE"],
            resources: ["nothing"],
          },
        ],
        sideEffects: "None",
        admissionReviewVersions: ["v1"],
      }),
    ),
  }));

const NAMES = ["x", "y"];

interface KindOfCalls {
  readonly collection: string;
  /** Of the objects: few, so that calls meet. */
  readonly names: readonly string[];
  readonly type: JsonObject;
  readonly hasStatus: boolean;
  /** Everything but metadata and type. */
  readonly content: fc.Arbitrary<JsonObject>;
  readonly operations: fc.Arbitrary<Json>;
}

const word = fc.constantFrom("1", "2");
const optional = <T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> =>
  fc.option(arbitrary, { nil: undefined, freq: 2 });

function defined(object: { readonly [name: string]: Json | undefined }): JsonObject {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}

const pairs = fc.dictionary(fc.constantFrom("a", "b", "c"), word, { maxKeys: 3 }) as fc.Arbitrary<JsonObject>;
/** Not empty: the real server stores an empty map of a custom resource's metadata, never shows it, and writes again. */
const somePairs = fc.dictionary(fc.constantFrom("a", "b", "c"), word, {
  minKeys: 1,
}) as fc.Arbitrary<JsonObject>;
const names = fc.uniqueArray(fc.constantFrom("x", "y", "z"), { maxLength: 3 });

const thingContent = fc
  .record({
    size: optional(fc.integer({ min: 1, max: 3 })),
    note: optional(word),
    tags: optional(names),
    parts: optional(names.map((list) => list.map((name) => ({ name })))),
    values: word,
    plain: optional(names),
    marks: optional(somePairs),
  })
  .map(({ values, parts, ...spec }) => ({
    spec: defined({
      ...spec,
      parts: parts?.map((one, i) => (i === 0 ? { ...one, value: values } : one)),
    } as JsonObject),
  }));

function operationsOn(field: string): fc.Arbitrary<Json> {
  const path = fc.constantFrom(`/${field}/a`, `/${field}/b`, "/metadata/labels/a", "/metadata/annotations/a");
  return fc.oneof(
    fc.record({ op: fc.constantFrom("add", "replace", "test"), path, value: word }),
    fc.record({ op: fc.constant("remove"), path }),
    fc.record({ op: fc.constant("add"), path: fc.constant(`/${field}`), value: pairs }),
  ) as fc.Arbitrary<Json>;
}

export function kindsOfCalls(namespace: string, group: string): readonly KindOfCalls[] {
  const core = `/api/v1/namespaces/${namespace}`;
  const encoded = pairs.map((data) =>
    Object.fromEntries(
      Object.entries(data).map(([key, value]) => [key, Buffer.from(String(value)).toString("base64")]),
    ),
  );
  const lease = fc
    .record({ holderIdentity: optional(word), leaseDurationSeconds: optional(fc.constantFrom(15, 30)) })
    .map((spec) => ({ spec: defined(spec) }));
  return [
    {
      collection: `${core}/configmaps`,
      names: NAMES,
      type: { apiVersion: "v1", kind: "ConfigMap" },
      hasStatus: false,
      content: pairs.map((data) => ({ data })),
      operations: operationsOn("data"),
    },
    {
      collection: `${core}/secrets`,
      names: NAMES,
      type: { apiVersion: "v1", kind: "Secret" },
      hasStatus: false,
      content: encoded.map((data) => ({ data })),
      operations: operationsOn("metadata/labels"),
    },
    {
      collection: `/apis/coordination.k8s.io/v1/namespaces/${namespace}/leases`,
      names: NAMES,
      type: { apiVersion: "coordination.k8s.io/v1", kind: "Lease" },
      hasStatus: false,
      content: lease,
      operations: operationsOn("metadata/annotations"),
    },
    {
      collection: `/apis/${group}/v1/namespaces/${namespace}/things`,
      names: NAMES,
      type: { apiVersion: `${group}/v1`, kind: "Thing" },
      hasStatus: true,
      content: thingContent,
      operations: operationsOn("spec/marks"),
    },
    {
      collection: "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
      names: NAMES.map((name) => `${namespace}-${name}`),
      type: { apiVersion: "admissionregistration.k8s.io/v1", kind: "ValidatingWebhookConfiguration" },
      hasStatus: false,
      content: webhooks,
      operations: operationsOn("metadata/labels"),
    },
  ];
}

/** A call to one of a few objects, so that calls meet. */
function anyCall(kind: KindOfCalls): fc.Arbitrary<Call> {
  const { collection, type, content, hasStatus, operations } = kind;
  const marks = hasStatus ? somePairs : pairs;
  const metadata = fc
    .record({
      labels: optional(marks),
      annotations: optional(marks),
      finalizers: fc.option(
        fc.uniqueArray(fc.constantFrom("usher.dev/a", "usher.dev/b"), {
          minLength: hasStatus ? 1 : 0,
          maxLength: 2,
        }),
        {
          nil: undefined,
          freq: 5,
        },
      ),
    })
    .map((one) => defined(one as JsonObject));
  const name = fc.constantFrom(...kind.names);
  const manager = fc.constantFrom("fieldManager=m1", "fieldManager=m2", "fieldManager=m3");
  const dry = fc.constantFrom("", "", "", "", "&dryRun=All");
  const version = fc.constantFrom<string | undefined>(undefined, undefined, "@version", "@version", "@older");
  const uid = fc.constantFrom<string | undefined>(undefined, undefined, undefined, "@uid", "00000000-none");
  const status = fc.record(
    { ready: fc.boolean(), note: word },
    { requiredKeys: [] },
  ) as fc.Arbitrary<JsonObject>;
  const base = { name, metadata, content, manager, dry, version, uid };
  const object = (
    one: { name: string; metadata: JsonObject; content: JsonObject },
    more: JsonObject = {},
  ) => ({
    ...type,
    ...one.content,
    metadata: { ...one.metadata, name: one.name, ...defined(more) },
  });
  const sub = hasStatus ? fc.constantFrom("", "", "/status") : fc.constant("");
  const withStatus = hasStatus ? optional(status) : fc.constant(undefined);
  const create = fc.record({ ...base, status: withStatus }).map((one) => ({
    method: "POST",
    path: `${collection}?${one.manager}${one.dry}`,
    body: { ...object(one), ...defined({ status: one.status }) },
  }));
  const put = fc.record({ ...base, sub, status: withStatus }).map((one) => ({
    method: "PUT",
    path: `${collection}/${one.name}${one.sub}?${one.manager}${one.dry}`,
    body: {
      ...object(one, { resourceVersion: one.version, uid: one.uid }),
      ...defined({ status: one.status }),
    },
  }));
  // As most clients write: the object that they have read, with a change.
  const roundTrip = fc.record({ ...base, sub, status: withStatus }).map((one) => ({
    method: "PUT",
    path: `${collection}/${one.name}${one.sub}?${one.manager}${one.dry}`,
    body: { "@object": object(one), ...one.content, ...defined({ status: one.status }) },
  }));
  const patch = fc
    .record({ ...base, sub, list: fc.array(operations, { minLength: 1, maxLength: 2 }) })
    .map((one) => ({
      method: "PATCH",
      type: JSON_PATCH,
      path: `${collection}/${one.name}${one.sub}?${one.manager}${one.dry}`,
      body: [
        ...one.list,
        ...(one.version === undefined
          ? []
          : [{ op: "add", path: "/metadata/resourceVersion", value: one.version }]),
      ],
    }));
  const merge = fc.record({ ...base, sub, remove: fc.boolean() }).map((one) => ({
    method: "PATCH",
    type: MERGE,
    path: `${collection}/${one.name}${one.sub}?${one.manager}${one.dry}`,
    body: {
      ...one.content,
      metadata: {
        ...one.metadata,
        ...defined({ resourceVersion: one.version, uid: one.uid }),
        ...(one.remove ? { labels: null, finalizers: null } : {}),
      },
    },
  }));
  const apply = fc
    .record({ ...base, sub, status: withStatus, force: fc.constantFrom("", "&force=true") })
    .map((one) => ({
      method: "PATCH",
      type: APPLY,
      path: `${collection}/${one.name}${one.sub}?${one.manager}${one.force}${one.dry}`,
      body: {
        ...object(one, { resourceVersion: one.version }),
        ...defined({ status: one.status }),
      },
    }));
  const remove = fc
    .record({ ...base, dryRun: fc.constantFrom(false, false, false, true) })
    .map(({ dryRun, ...one }) => ({
      method: "DELETE",
      path: `${collection}/${one.name}`,
      body: {
        kind: "DeleteOptions",
        apiVersion: "v1",
        propagationPolicy: "Background",
        preconditions: defined({ uid: one.uid, resourceVersion: one.version }),
        ...(dryRun ? { dryRun: ["All"] } : {}),
      },
    }));
  const get = name.map((one) => ({ method: "GET", path: `${collection}/${one}` }));
  // The shared cluster has more objects outside of the namespace.
  const list = fc
    .constantFrom(
      "",
      "?labelSelector=a%3D1",
      "?labelSelector=a,!b",
      "?labelSelector=a+in+(1,2)",
      `?fieldSelector=metadata.name%3D${kind.names[0]}`,
      "?limit=1",
      "?limit=1&continue=@token",
      "?resourceVersionMatch=Exact",
    )
    .map((query) => ({ method: "GET", path: `${collection}${query}` }));
  return fc.oneof(
    { weight: 4, arbitrary: create },
    { weight: 3, arbitrary: put },
    { weight: 3, arbitrary: roundTrip },
    { weight: 3, arbitrary: patch },
    { weight: 3, arbitrary: merge },
    { weight: 5, arbitrary: apply },
    { weight: 2, arbitrary: remove },
    { weight: 1, arbitrary: get },
    { weight: collection.includes("/namespaces/") ? 1 : 0, arbitrary: list },
  ) as fc.Arbitrary<Call>;
}

/** Calls to the objects of one kind. */
export interface RandomHistory {
  readonly kind: KindOfCalls;
  readonly calls: readonly Call[];
}

export function anyHistory(kinds: readonly KindOfCalls[], length: number): fc.Arbitrary<RandomHistory> {
  return fc
    .constantFrom(...kinds)
    .chain((kind) =>
      fc.array(anyCall(kind), { minLength: length, maxLength: length }).map((calls) => ({ kind, calls })),
    );
}

/** Ends the events of a history. */
export function lastCall({ collection, type, names: all }: KindOfCalls): Call {
  return { method: "POST", path: collection, body: { ...type, metadata: { name: lastName(all) } } };
}

function lastName([name]: readonly string[]): string {
  return `${name}-end`;
}

/** Removes the objects of a history. */
export function cleanup({ collection, names: all }: KindOfCalls): Call[] {
  return [...all, lastName(all)].flatMap((name) => [
    { method: "PATCH", type: MERGE, path: `${collection}/${name}`, body: { metadata: { finalizers: null } } },
    { method: "DELETE", path: `${collection}/${name}` },
  ]);
}
