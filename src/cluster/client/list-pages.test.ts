import { expect, test } from "vitest";
import { answerOf, NO_SUCH_API, refuse, TestApiServer } from "../../../test/support/cluster/api-server.ts";
import { stringAt } from "../../core/json.ts";
import type { ApiResponse } from "./client.ts";
import { ListError, listAll, listIfServed, listPages, pageIn } from "./list-pages.ts";
import { TooLargeError } from "./response-body.ts";

const PATH = "/apis/batch/v1/cronjobs";
const CRON_JOBS = { group: "batch", version: "v1", resource: "cronjobs", namespaced: true };

function page(names: readonly string[], next = ""): ApiResponse {
  return answerOf(200, {
    apiVersion: "batch/v1",
    kind: "CronJobList",
    metadata: { resourceVersion: "7", continue: next },
    items: names.map((name) => ({ metadata: { name } })),
  });
}

/** Answers by the URL's path and query; any other request gets a 404 as text. */
function serverWith(answers: Readonly<Record<string, ApiResponse>>): TestApiServer {
  const server = new TestApiServer();
  server.fault = (_, path) => answers[path] ?? NO_SUCH_API;
  return server;
}

test("items have the apiVersion and kind of their list, unless they have their own", () => {
  const found = pageIn({ apiVersion: "v1", kind: "PodList", items: [{}, { kind: "Own" }] });
  expect(found?.items).toEqual([
    { apiVersion: "v1", kind: "Pod" },
    { apiVersion: "v1", kind: "Own" },
  ]);
});

test("null items are an empty list", () => {
  expect(pageIn({ items: null })).toMatchObject({ items: [], next: undefined, remaining: undefined });
});

test("a page has the number of remaining objects if the API server reports it", () => {
  const metadata = { continue: "t", remainingItemCount: 12 };
  expect(pageIn({ metadata, items: [] })).toMatchObject({ next: "t", remaining: 12 });
});

test.each([[undefined], [null], ["items"], [[]], [{}], [{ items: {} }], [{ items: [1] }], [{ items: "" }]])(
  "%j is not a list",
  (body) => {
    expect(pageIn(body)).toBeUndefined();
  },
);

test("continue tokens are followed, with the selectors on each page", async () => {
  const server = serverWith({
    [`${PATH}?labelSelector=a%3Db&limit=2`]: page(["a", "b"], "t 1"),
    [`${PATH}?labelSelector=a%3Db&limit=2&continue=t+1`]: page(["c"]),
  });
  const names: unknown[] = [];
  for await (const { items } of listPages(server.client, PATH, { labelSelector: "a=b", limit: () => 2 }))
    names.push(items.length);
  expect(names).toEqual([2, 1]);
});

test.each<[string, ApiResponse, RegExp]>([
  ["a refusal", refuse(403, "Forbidden"), /listing \/apis.*403/],
  ["no list", answerOf(200, { kind: "Status" }), /listing \/apis.*: not a list/],
  ["the same token again", page([], "t1"), /listing \/apis/],
  ["404", NO_SUCH_API, /listing \/apis.*404/],
])("a later page that is %s fails the whole list", async (_, answer, message) => {
  const server = serverWith({
    [`${PATH}?limit=25`]: page(["a"], "t1"),
    [`${PATH}?limit=50&continue=t1`]: answer,
  });
  const error = await listAll(server.client, PATH).catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(ListError);
  expect(error).toMatchObject({ firstPage: false, message: expect.stringMatching(message) });
});

test("a list whose continue token expired is read again from its start, in pages", async () => {
  const answers = [page(["a"], "t1"), refuse(410, "Expired"), page(["b"], "t2"), page(["c"])];
  const server = new TestApiServer();
  server.fault = () => answers.shift();
  const found = await listAll(server.client, PATH);
  expect(found.map(({ metadata }) => metadata)).toEqual([{ name: "b" }, { name: "c" }]);
  expect(server.asked.every((asked) => asked.includes("limit="))).toBe(true);
});

test("a list whose continue token expires twice fails", async () => {
  const answers = [page(["a"], "t1"), refuse(410, "Expired"), page(["a"], "t2"), refuse(410, "Expired")];
  const server = new TestApiServer();
  server.fault = () => answers.shift();
  await expect(listAll(server.client, PATH)).rejects.toThrow(/410/);
});

/** A server whose objects have this many characters each. */
function serverOf(sizes: readonly number[]): TestApiServer {
  const server = new TestApiServer();
  for (const [i, size] of sizes.entries())
    server.put(`${PATH}/c${i}`, { spec: { text: "x".repeat(size) }, metadata: { namespace: "shop" } });
  return server;
}

function limitsOf({ asked }: TestApiServer): number[] {
  return asked.map((one) => Number(/limit=(\d+)/.exec(one)?.[1]));
}

const MB = 1_000_000;

test.each<[string, readonly number[], readonly number[]]>([
  ["grow while they are small", Array(1_300).fill(10), [25, 50, 100, 200, 400, 500, 500]],
  ["stay if the next size would not fit", Array(100).fill(60_000), [25, 25, 25, 25]],
  ["shrink to one object", Array(6).fill(1.5 * MB), [25, 6, 1, 1, 1, 1, 1, 1]],
  [
    "grow again after large objects",
    [...Array(2).fill(1.5 * MB), ...Array(9).fill(10)],
    [25, 6, 1, 1, 1, 2, 4, 8],
  ],
  ["have one object of any size that etcd stores", [15 * MB, 10], [25, 6, 1, 1]],
])("pages %s", async (_, sizes, limits) => {
  const server = serverOf(sizes);
  expect(await listAll(server.client, PATH)).toHaveLength(sizes.length);
  expect(limitsOf(server)).toEqual(limits);
});

test("an object larger than any stored one is left out by its name, and the list continues", async () => {
  const server = serverOf([10, 17 * MB, 10]);
  const pages: unknown[] = [];
  for await (const { items, skipped } of listPages(server.client, PATH)) pages.push(skipped ?? items.length);
  expect(pages).toEqual([1, { namespace: "shop", name: "c1" }, 1]);
  await expect(listAll(server.client, PATH)).rejects.toThrow(/shop\/c1 is too large to be read/);
});

test("an object that becomes the first while another is too large is read, and the large one is left out", async () => {
  const server = serverOf([17 * MB, 10]);
  server.fault = (_method, _path, { accept }) => {
    const large = server.objects.get(`${PATH}/c0`);
    if (accept !== undefined && large !== undefined) {
      // The server lists objects in order of creation.
      server.objects.delete(`${PATH}/c0`);
      server.put(`${PATH}/c0`, large);
    }
    return undefined;
  };
  const pages: unknown[] = [];
  for await (const { items, skipped } of listPages(server.client, PATH))
    pages.push(skipped ?? items.map((item) => stringAt(item, "metadata", "name")));
  expect(pages).toEqual([["c1"], { namespace: "shop", name: "c0" }]);
  expect(server.asked.filter((one) => one.includes("resourceVersionMatch=Exact"))).toEqual([
    expect.stringMatching(/resourceVersion=\d+&.*limit=1$/),
  ]);
});

test("a list of a server that ignores limits fails if it is too large, and no object is left out", async () => {
  const server = new TestApiServer();
  const item = (i: number) => ({ metadata: { name: `c${i}` } });
  server.fault = (_method, _path, { accept }) =>
    accept === undefined ? new TooLargeError("too large") : answerOf(200, { items: [item(0), item(1)] });
  await expect(listAll(server.client, PATH)).rejects.toThrow("too large");
});

test("an object whose metadata alone is too large fails the list", async () => {
  const server = new TestApiServer();
  server.put(`${PATH}/c`, { metadata: { annotations: { text: "x".repeat(17 * MB) } } });
  await expect(listAll(server.client, PATH)).rejects.toThrow(/too large/);
});

test("410 on the first page is an error: no older state exists to fall back from", async () => {
  const server = serverWith({ [`${PATH}?limit=25`]: refuse(410, "Expired") });
  await expect(listAll(server.client, PATH)).rejects.toThrow(/410/);
});

const GROUPS = (groupVersion: string) => answerOf(200, { groups: [{ versions: [{ groupVersion }] }] });

test.each<[string, Readonly<Record<string, ApiResponse>>, boolean]>([
  ["the version no longer lists it", { "/apis/batch/v1": answerOf(200, { resources: [] }) }, true],
  ["the groups no longer list its version", { "/apis": GROUPS("batch/v2") }, true],
  [
    "the version still lists it",
    { "/apis/batch/v1": answerOf(200, { resources: [{ name: "cronjobs" }] }) },
    false,
  ],
  ["the groups still list its version", { "/apis": GROUPS("batch/v1") }, false],
  ["the version is answered with something else", { "/apis/batch/v1": answerOf(200, {}) }, false],
  ["the groups are answered with something else", { "/apis": answerOf(200, {}) }, false],
  ["discovery is refused", { "/apis/batch/v1": refuse(403, "Forbidden") }, false],
  ["nothing is served", {}, false],
])("404 if %s", async (_, answers, empty) => {
  const list = listIfServed(serverWith(answers).client, CRON_JOBS, "shop");
  if (empty) expect(await list).toEqual([]);
  else await expect(list).rejects.toThrow();
});

test("404 for a core resource is never an empty list", async () => {
  const pods = { group: "", version: "v1", resource: "pods", namespaced: true };
  await expect(listIfServed(serverWith({ "/apis": GROUPS("a/v1") }).client, pods)).rejects.toThrow(/404/);
});
