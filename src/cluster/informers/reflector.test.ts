import { setTimeout as sleep } from "node:timers/promises";
import { expect, test } from "vitest";
import { answerOf } from "../../../test/support/cluster/api-server.ts";
import { TestWatchServer } from "../../../test/support/cluster/watch-server.ts";
import type { Json } from "../../core/json.ts";
import { SILENT } from "../../core/log.ts";
import { type Client, ConnectionError } from "../client/client.ts";
import { createResources } from "../client/discovery.ts";
import { Reflector } from "./reflector.ts";
import { REFLECTOR_LIMITS, type ReflectorLimits } from "./reflector-limits.ts";
import { TimeSliceQueue } from "./time-slices.ts";

/** Short delays for tests. */
const LIMITS: ReflectorLimits = {
  ...REFLECTOR_LIMITS,
  backoff: { firstMs: 2, longestMs: 10, forgetMs: 1_000 },
  notServedMs: 2,
  absentDiscoveries: 2,
};

const THINGS = "things.things.test";

/** Records changes as `a` for an object, `-a` for a delete, and `all` for a complete list. */
function open(client: Client, seen: string[] = [], presence = false): Reflector {
  const reflector = new Reflector({
    client,
    resources: createResources(client, []),
    resource: THINGS,
    presence,
    prune: (object) => object,
    timeSlices: new TimeSliceQueue(),
    log: SILENT,
    limits: LIMITS,
    onChange: (changes, synced) => {
      seen.push(...changes.map(({ name, object }) => (object === undefined ? `-${name}` : name)));
      if (synced) seen.push("all");
    },
  });
  reflector.start();
  return reflector;
}

async function until(done: () => boolean): Promise<void> {
  while (!done()) await sleep(2);
}

test("a presence-only resource is discovered and never listed", async () => {
  const { client } = serverWithBodies("list", []);
  const seen: string[] = [];
  const paths: string[] = [];
  const recording: Client = {
    ...client,
    stream: () => Promise.reject(new Error("watched")),
    request: (method, path, options) => {
      paths.push(path);
      return client.request(method, path, options);
    },
  };
  const reflector = open(recording, seen, true);
  await until(() => seen.length > 0);
  await reflector.stop();
  expect(seen).toEqual(["all"]);
  expect(reflector.status).toMatchObject({ served: true, errors: 0 });
  expect(paths.filter((path) => path.includes("?"))).toEqual([]);
});

test("stopping does not wait for a discovery that hangs", async () => {
  const server = new TestWatchServer();
  let hangs = 0;
  const client: Client = {
    server: server.server,
    stream: server.stream,
    close: server.close,
    request: (_method, _path, { signal } = {}) => {
      hangs += 1;
      return new Promise((_, reject) => {
        signal?.addEventListener("abort", () => reject(new ConnectionError("canceled by the caller")));
      });
    },
  };
  const reflector = open(client);
  await until(() => hangs === 1);
  await reflector.stop();
  expect(reflector.status).toMatchObject({ errors: 0, served: undefined });
});

/** A server of two objects in pages that first answers `which` with the given bodies. */
function serverWithBodies(
  which: "discovery" | "list",
  odd: Json[],
): { client: Client; server: TestWatchServer } {
  const server = new TestWatchServer();
  server.streaming = false;
  server.history("things").put("a", "1");
  server.history("things").put("b", "1");
  const request: Client["request"] = async (method, path, options) => {
    if (path === "/apis/things.test") return answerOf(200, { versions: [{ version: "v1" }] });
    const answer = await server.request(method, path, options);
    const body = path.includes("?") === (which === "list") ? odd.shift() : undefined;
    return body === undefined ? answer : answerOf(200, body);
  };
  const stream: Client["stream"] = (path, options) =>
    // A 404 makes the reflector discover the resource again.
    server.stream(which === "discovery" && odd.length > 0 ? path.replace("things?", "none?") : path, options);
  return { server, client: { server: server.server, stream, close: server.close, request } };
}

test.each<[string, Json]>([
  ["nothing", {}],
  ["a list of things without a version", { kind: "ThingList", metadata: {}, items: [] }],
  ["an empty version", { metadata: { resourceVersion: "" }, items: [] }],
  ["a version and nothing else", { metadata: { resourceVersion: "7" } }],
  ["items that are not a list", { metadata: { resourceVersion: "7" }, items: {} }],
  ["a text", "all is well"],
  ["a list of lists", [{ metadata: { resourceVersion: "7" }, items: [] }]],
])("%s in place of a list deletes nothing, and the list is requested again", async (_, odd) => {
  const bodies: Json[] = [];
  const { server, client } = serverWithBodies("list", bodies);
  const seen: string[] = [];
  const reflector = open(client, seen);
  await until(() => server.streams === 1);
  expect(seen).toEqual(["a", "b", "all"]);
  const { errors } = reflector.status;
  bodies.push(odd, odd);
  server.break();
  server.history("things").put("c", "1");
  server.history("things").compact();
  await until(() => seen.includes("c") && server.streams === 1);
  expect(bodies).toEqual([]);
  expect(seen.slice(3)).toEqual(["a", "b", "c", "all"]);
  // Two for the lists, one for the broken watch and one for its compacted version.
  expect(reflector.status.errors).toBe(errors + 4);
  await reflector.stop();
});

test("an API server that refuses streamed lists is asked once, which is not an error", async () => {
  const { server, client } = serverWithBodies("list", []);
  const seen: string[] = [];
  const reflector = open(client, seen);
  await until(() => server.streams === 1);
  expect(reflector.status).toMatchObject({ errors: 0, lastError: undefined });
  server.break();
  server.history("things").put("c", "1");
  server.history("things").compact();
  await until(() => seen.filter((what) => what === "all").length === 2 && server.streams === 1);
  expect(server.asked.filter((path) => path.includes("sendInitialEvents"))).toHaveLength(1);
  await reflector.stop();
});

test("an empty list may be null, as Go encodes nil slices", async () => {
  const odd = { metadata: { resourceVersion: "3" }, items: null };
  const { server, client } = serverWithBodies("list", [odd]);
  const seen: string[] = [];
  const reflector = open(client, seen);
  await until(() => server.streams === 1);
  expect(seen[0]).toBe("all");
  await reflector.stop();
});

test.each<[string, Json]>([
  ["nothing", {}],
  ["a text", "all is well"],
  ["resources that are not a list", { resources: {} }],
])("%s in place of a discovery document does not mean that the resource is not served", async (_, odd) => {
  const bodies: Json[] = [];
  const { server, client } = serverWithBodies("discovery", bodies);
  const seen: string[] = [];
  const reflector = open(client, seen);
  await until(() => server.streams === 1);
  bodies.push(odd, odd, odd);
  server.break();
  await until(() => bodies.length === 0 && server.streams === 1);
  expect(seen).toEqual(["a", "b", "all", "a", "b", "all"]);
  expect(reflector.status.served).toBe(true);
  await reflector.stop();
});
