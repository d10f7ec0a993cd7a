import { describe, expect, it } from "vitest";
import { at, type Json, type JsonObject, listAt, stringAt } from "../../../src/core/json.ts";
import type { CallWebhook } from "./admission.ts";
import { type ApiRequest, ApiServer, type ApiServerOptions } from "./api-server.ts";
import { APPLY, JSON_PATCH, MERGE, simulated } from "./conformance.ts";
import { Controllers } from "./controllers.ts";

function world(options: Partial<ApiServerOptions> = {}) {
  const made = simulated(options);
  const call = async (method: string, path: string, body?: Json, contentType?: string) =>
    made.server.handle({ method, path, body, contentType });
  return { ...made, call };
}

const MAPS = "/api/v1/namespaces/a/configmaps";

const namespace = (name: string): JsonObject => ({ apiVersion: "v1", kind: "Namespace", metadata: { name } });
const map = (name: string, data: JsonObject = {}, metadata: JsonObject = {}): JsonObject => ({
  apiVersion: "v1",
  kind: "ConfigMap",
  metadata: { name, ...metadata },
  data,
});

async function withNamespace(options: Partial<ApiServerOptions> = {}) {
  const made = world(options);
  await made.call("POST", "/api/v1/namespaces", namespace("a"));
  return made;
}

async function read(server: ApiServer, request: Omit<ApiRequest, "method">) {
  const stream = server.open({ method: "GET", ...request });
  const lines: JsonObject[] = [];
  const done = (async () => {
    for await (const line of stream.lines) lines.push(JSON.parse(line) as JsonObject);
  })();
  const types = (): string[] =>
    lines.map((line) =>
      `${stringAt(line, "type")} ${stringAt(line, "object", "metadata", "name") ?? ""}`.trim(),
    );
  return { stream, lines, types, done };
}

describe("writes", () => {
  it("a second creation of the same name conflicts, and a version that is not the stored one conflicts", async () => {
    const { call } = await withNamespace();
    const created = await call("POST", MAPS, map("x", { k: "1" }));
    expect(created.status).toBe(201);
    expect(at((await call("POST", MAPS, map("x"))).body, "reason")).toBe("AlreadyExists");
    const changed = await call("PUT", `${MAPS}/x`, map("x", { k: "2" }));
    expect(changed.status).toBe(200);
    const outdated = await call("PUT", `${MAPS}/x`, created.body);
    expect([outdated.status, at(outdated.body, "reason")]).toEqual([409, "Conflict"]);
  });

  it("a write that changes nothing keeps the resourceVersion and sends no event", async () => {
    const { call, store } = await withNamespace();
    const created = await call("POST", MAPS, map("x", { k: "1" }));
    const { revision } = store;
    const same = await call("PUT", `${MAPS}/x`, created.body);
    expect(same.body).toEqual(created.body);
    expect(store.revision).toBe(revision);
  });

  it("an object with finalizers is deleted when the last one is removed", async () => {
    const { call, store } = await withNamespace();
    await call("POST", MAPS, map("x", {}, { finalizers: ["usher.dev/f"] }));
    const marked = await call("DELETE", `${MAPS}/x`);
    expect(stringAt(marked.body, "metadata", "deletionTimestamp")).toBe("2026-01-01T00:00:00Z");
    const added = await call(
      "PATCH",
      `${MAPS}/x`,
      { metadata: { finalizers: ["usher.dev/f", "b/c"] } },
      MERGE,
    );
    expect(added.status).toBe(422);
    expect((await call("PATCH", `${MAPS}/x`, { metadata: { finalizers: null } }, MERGE)).status).toBe(200);
    expect(store.get("configmaps", "a/x")).toBeUndefined();
  });

  it("a deletion with preconditions spares an object that was replaced", async () => {
    const { call } = await withNamespace();
    const { body } = await call("POST", MAPS, map("x"));
    await call("DELETE", `${MAPS}/x`);
    await call("POST", MAPS, map("x"));
    const preconditions = { uid: stringAt(body, "metadata", "uid") ?? "" };
    expect((await call("DELETE", `${MAPS}/x`, { preconditions })).status).toBe(409);
    expect((await call("GET", `${MAPS}/x`)).status).toBe(200);
  });

  it("a JSON patch with a failing test changes nothing", async () => {
    const { call } = await withNamespace();
    await call("POST", MAPS, map("x", { k: "1" }));
    const patch = [
      { op: "replace", path: "/data/k", value: "2" },
      { op: "test", path: "/data/k", value: "3" },
    ];
    expect((await call("PATCH", `${MAPS}/x`, patch, JSON_PATCH)).status).toBe(422);
    expect(at((await call("GET", `${MAPS}/x`)).body, "data")).toEqual({ k: "1" });
  });

  it("a dry run stores nothing", async () => {
    const { call, store } = await withNamespace();
    const { revision } = store;
    expect((await call("POST", `${MAPS}?dryRun=All`, map("x"))).status).toBe(201);
    expect(store.revision).toBe(revision);
  });

  it("two managers that apply different values conflict, and force takes the field over", async () => {
    const { call } = await withNamespace();
    const path = (manager: string, force = "") => `${MAPS}/x?fieldManager=${manager}${force}`;
    expect((await call("PATCH", path("m1"), map("x", { k: "1", l: "1" }), APPLY)).status).toBe(201);
    const refused = await call("PATCH", path("m2"), map("x", { k: "2" }), APPLY);
    expect([refused.status, listAt(refused.body, "details", "causes").length]).toEqual([409, 1]);
    const forced = await call("PATCH", path("m2", "&force=true"), map("x", { k: "2" }), APPLY);
    expect(at(forced.body, "data")).toEqual({ k: "2", l: "1" });
    // The first manager no longer applies l, and k is the other's.
    const dropped = await call("PATCH", path("m1"), map("x", { m: "1" }), APPLY);
    expect(at(dropped.body, "data")).toEqual({ k: "2", m: "1" });
  });
});

describe("reads", () => {
  it("pages show the state of the first one, and a compacted token is expired", async () => {
    const { call, store } = await withNamespace();
    for (const name of ["x", "y", "z"]) await call("POST", MAPS, map(name));
    const first = await call("GET", `${MAPS}?limit=2`);
    await call("DELETE", `${MAPS}/z`);
    const token = stringAt(first.body, "metadata", "continue") ?? "";
    const second = await call("GET", `${MAPS}?limit=2&continue=${token}`);
    expect(listAt(second.body, "items").map((one) => stringAt(one, "metadata", "name"))).toEqual(["z"]);
    store.compact();
    const expired = await call("GET", `${MAPS}?limit=2&continue=${token}`);
    expect([expired.status, at(expired.body, "reason")]).toEqual([410, "Expired"]);
  });

  it("a watch sends the events after its version, as its selector sees them", async () => {
    const { call, store, server } = await withNamespace();
    const start = store.revision;
    await call("POST", MAPS, map("x", {}, { labels: { on: "1" } }));
    await call("POST", MAPS, map("y"));
    const query = `watch=true&resourceVersion=${start}&labelSelector=on%3D1`;
    const watch = await read(server, { path: `${MAPS}?${query}` });
    await call("PATCH", `${MAPS}/x`, { metadata: { labels: { on: null } } }, MERGE);
    await call("PATCH", `${MAPS}/y`, { metadata: { labels: { on: "1" } } }, MERGE);
    await new Promise(setImmediate);
    expect(watch.types()).toEqual(["ADDED x", "DELETED x", "ADDED y"]);
    watch.stream.close();
    await watch.done;
  });

  it("a streamed list ends with a bookmark, and the watch with its timeout", async () => {
    const { call, server, clock } = await withNamespace();
    await call("POST", MAPS, map("x"));
    const query =
      "watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=20";
    const watch = await read(server, { path: `${MAPS}?${query}` });
    await clock.pass(21_000);
    await watch.done;
    expect(watch.types()).toEqual(["ADDED x", "BOOKMARK", "BOOKMARK"]);
    const annotations = at(watch.lines[1], "object", "metadata", "annotations");
    expect(annotations).toEqual({ "k8s.io/initial-events-end": "true" });
  });

  it("a version older than the watch cache is expired by an event", async () => {
    const { call, store, server } = await withNamespace();
    const start = store.revision;
    await call("POST", MAPS, map("x"));
    server.restart();
    const watch = await read(server, { path: `${MAPS}?watch=true&resourceVersion=${start}` });
    await watch.done;
    expect(watch.lines.map((line) => at(line, "object", "code"))).toEqual([410]);
  });

  it("a server that lags shows an older state to watches and to reads of any version, not to others", async () => {
    const { call, store, base, clock } = await withNamespace();
    const late = new ApiServer(store, { ...base, lag: () => 500 });
    await call("POST", MAPS, map("x"));
    const watch = await read(late, { path: `${MAPS}?watch=true&resourceVersion=0` });
    const get = async (query: string) =>
      (await late.handle({ method: "GET", path: `${MAPS}/x${query}` })).status;
    expect([await get("?resourceVersion=0"), await get("")]).toEqual([404, 200]);
    await clock.pass(0);
    expect(watch.types()).toEqual([]);
    await clock.pass(500);
    expect(watch.types()).toEqual(["ADDED x"]);
    expect(await get("?resourceVersion=0")).toBe(200);
    watch.stream.close();
  });
});

describe("admission", () => {
  const configuration = (kind: "Mutating" | "Validating", entry: JsonObject): JsonObject => ({
    apiVersion: "admissionregistration.k8s.io/v1",
    kind: `${kind}WebhookConfiguration`,
    metadata: { name: "gate" },
    webhooks: [
      {
        name: "gate.usher.dev",
        rules: [{ apiGroups: [""], apiVersions: ["v1"], operations: ["*"], resources: ["configmaps"] }],
        clientConfig: { service: { name: "gate", namespace: "a" } },
        admissionReviewVersions: ["v1"],
        sideEffects: "None",
        timeoutSeconds: 5,
        ...entry,
      },
    ],
  });
  const respond =
    (response: JsonObject): CallWebhook =>
    async (review) => ({ response: { uid: stringAt(review, "request", "uid"), ...response } });
  const configurations = (kind: string) =>
    `/apis/admissionregistration.k8s.io/v1/${kind.toLowerCase()}webhookconfigurations`;
  const create = async (kind: "Mutating" | "Validating", entry: JsonObject, callWebhook: CallWebhook) => {
    const made = await withNamespace({ callWebhook });
    await made.call("POST", configurations(kind), configuration(kind, entry));
    return made;
  };

  it("a webhook refuses with its message", async () => {
    const { call } = await create(
      "Validating",
      {},
      respond({ allowed: false, status: { code: 403, message: "no" } }),
    );
    const { status, body } = await call("POST", MAPS, map("x"));
    expect([status, at(body, "message")]).toEqual([
      403,
      'admission webhook "gate.usher.dev" denied the request: no',
    ]);
  });

  it("a silent webhook refuses after its timeout if it is closed, and allows if it is open", async () => {
    const silent: CallWebhook = () => new Promise(() => undefined);
    for (const [failurePolicy, expected] of [
      ["Fail", 500],
      ["Ignore", 201],
    ] as const) {
      const { call, clock } = await create("Validating", { failurePolicy }, silent);
      const created = call("POST", MAPS, map("x"));
      let status: number | undefined;
      void created.then((answer) => {
        status = answer.status;
      });
      await clock.pass(4_999);
      expect(status).toBeUndefined();
      await clock.pass(1);
      expect(status).toBe(expected);
    }
  });

  it("patches are applied, and a webhook with IfNeeded is asked again after a later change", async () => {
    const asked: string[] = [];
    const callWebhook: CallWebhook = async (review, { name }) => {
      asked.push(name);
      const key = name.slice(0, 1);
      const patch = [{ op: "add", path: `/data/${key}`, value: String(asked.length) }];
      const encoded = Buffer.from(JSON.stringify(patch)).toString("base64");
      const uid = stringAt(review, "request", "uid");
      return { response: { uid, allowed: true, patchType: "JSONPatch", patch: encoded } };
    };
    const made = await withNamespace({ callWebhook });
    const both = configuration("Mutating", {});
    const [entry] = listAt(both, "webhooks") as JsonObject[];
    const webhooks = [
      { ...entry, name: "a.usher.dev", reinvocationPolicy: "IfNeeded" },
      { ...entry, name: "b.usher.dev" },
    ];
    await made.call("POST", configurations("Mutating"), { ...both, webhooks });
    const { body } = await made.call("POST", MAPS, map("x", { k: "1" }));
    expect(asked).toEqual(["a.usher.dev", "b.usher.dev", "a.usher.dev"]);
    expect(at(body, "data")).toEqual({ k: "1", a: "3", b: "2" });
  });

  it("match conditions and the namespace selector decide whether a webhook is asked", async () => {
    const refuse = respond({ allowed: false });
    const expression = "has(object.data) && 'k' in object.data && object.data['k'] != 'ok'";
    const conditional = await create("Validating", { matchConditions: [{ name: "k", expression }] }, refuse);
    expect((await conditional.call("POST", MAPS, map("x", { k: "ok" }))).status).toBe(201);
    expect((await conditional.call("POST", MAPS, map("y", { k: "no" }))).status).toBe(400);
    const namespaceSelector = { matchLabels: { "kubernetes.io/metadata.name": "b" } };
    const elsewhere = await create("Validating", { namespaceSelector }, refuse);
    expect((await elsewhere.call("POST", MAPS, map("x"))).status).toBe(201);
  });

  it("a write that lost a race is repeated with admission, unless it names a version", async () => {
    let races = 0;
    const made = await withNamespace({
      callWebhook: async (review) => {
        const stored = made.store.get("configmaps", "a/x");
        if (stored !== undefined && races > 0) {
          races -= 1;
          const version = Number(stringAt(stored, "metadata", "resourceVersion"));
          made.store.write(
            "configmaps",
            "a/x",
            { ...stored, data: { other: String(races) } },
            version,
            "other",
          );
        }
        return { response: { uid: stringAt(review, "request", "uid"), allowed: true } };
      },
    });
    await made.call("POST", configurations("Validating"), configuration("Validating", {}));
    const { body } = await made.call("POST", MAPS, map("x"));
    races = 1;
    const value = stringAt(body, "metadata", "resourceVersion") ?? "";
    const guard = { op: "add", path: "/metadata/resourceVersion", value };
    const add = { op: "add", path: "/data/own", value: "1" };
    const whole = { op: "add", path: "/data", value: {} };
    expect((await made.call("PATCH", `${MAPS}/x`, [whole, add, guard], JSON_PATCH)).status).toBe(409);
    races = 2;
    const repeated = await made.call("PATCH", `${MAPS}/x`, [add], JSON_PATCH);
    expect([repeated.status, at(repeated.body, "data")]).toEqual([200, { other: "0", own: "1" }]);
    races = 5;
    expect((await made.call("PATCH", `${MAPS}/x`, [add], JSON_PATCH)).status).toBe(409);
  });
});

describe("controllers", () => {
  async function controlled() {
    const made = await withNamespace();
    const controllers = new Controllers(made.store, made.server, { schedule: made.clock.schedule });
    return { ...made, controllers };
  }

  it("dependents are deleted after their owner", async () => {
    const { call, store, clock } = await controlled();
    const { body } = await call("POST", MAPS, map("owner"));
    const uid = stringAt(body, "metadata", "uid") ?? "";
    const ownerReferences = [{ apiVersion: "v1", kind: "ConfigMap", name: "owner", uid }];
    await call("POST", MAPS, map("dependent", {}, { ownerReferences }));
    await clock.pass(1_000);
    expect(store.get("configmaps", "a/dependent")).toBeDefined();
    await call("DELETE", `${MAPS}/owner`);
    await clock.pass(1_000);
    expect(store.get("configmaps", "a/dependent")).toBeUndefined();
  });

  it("a namespace that is being deleted refuses new objects, loses its content and goes", async () => {
    const { call, store, clock } = await controlled();
    await call("POST", MAPS, map("x", {}, { finalizers: ["usher.dev/f"] }));
    await call("DELETE", "/api/v1/namespaces/a");
    const refused = await call("POST", MAPS, map("y"));
    expect([refused.status, at(refused.body, "details", "causes", 0, "reason")]).toEqual([
      403,
      "NamespaceTerminating",
    ]);
    await clock.pass(1_000);
    expect(store.get("namespaces", "a")).toBeDefined();
    await call("PATCH", `${MAPS}/x`, { metadata: { finalizers: null } }, MERGE);
    await clock.pass(1_000);
    expect(store.get("namespaces", "a")).toBeUndefined();
  });

  it("a custom resource is served once its definition is established, and removed with it", async () => {
    const { call, store, clock } = await controlled();
    const schema = {
      openAPIV3Schema: {
        type: "object",
        properties: { spec: { type: "object", properties: { size: { type: "integer", default: 3 } } } },
      },
    };
    const version = { name: "v1", served: true, storage: true, schema, subresources: { status: {} } };
    const names = { plural: "things", singular: "thing", kind: "Thing", listKind: "ThingList" };
    const crd = {
      apiVersion: "apiextensions.k8s.io/v1",
      kind: "CustomResourceDefinition",
      metadata: { name: "things.usher.test" },
      spec: { group: "usher.test", names, scope: "Cluster", versions: [version] },
    };
    const crds = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    await call("POST", crds, crd);
    const things = "/apis/usher.test/v1/things";
    expect((await call("GET", things)).status).toBe(404);
    await clock.pass(1_000);
    const thing = { apiVersion: "usher.test/v1", kind: "Thing", metadata: { name: "t" } };
    const { body } = await call("POST", things, { ...thing, spec: { unknown: 1 }, status: { ready: true } });
    expect([at(body, "spec"), at(body, "status"), at(body, "metadata", "generation")]).toEqual([
      { size: 3 },
      undefined,
      1,
    ]);
    await call("DELETE", `${crds}/things.usher.test`);
    await clock.pass(3_000);
    expect(store.list("things.usher.test")).toEqual([]);
    expect((await call("GET", things)).status).toBe(404);
  });
});
