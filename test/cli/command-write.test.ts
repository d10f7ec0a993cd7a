import { beforeEach, expect, test } from "vitest";
import { Writer } from "../../src/cli/command/write.ts";
import {
  type ApiResponse,
  type Client,
  ConnectionError,
  type RequestOptions,
} from "../../src/cluster/client/client.ts";
import { createSender } from "../../src/cluster/controller/planned-writes.ts";
import { at, type Json, stringAt } from "../../src/core/json.ts";
import type { PlannedChange } from "../../src/core/module/command.ts";
import { answerOf, refuse } from "../support/cluster/api-server.ts";

const OF = { resource: "widgets", namespace: "shop", name: "web" };
const STORED = { metadata: { resourceVersion: "7", generation: 1 }, spec: { size: 1 } };
const WRITTEN = { metadata: { resourceVersion: "8", generation: 2 }, spec: { size: 2 } };
const UNDO = { patch: [{ op: "remove", path: "/spec/size" }], of: OF, resourceVersion: "8" } as const;

const resize: PlannedChange = {
  kind: "Widget",
  of: OF,
  plan: (stored) => ({
    patch: [{ op: "replace", path: "/spec/size", value: 2 }],
    of: OF,
    resourceVersion: stringAt(stored, "metadata", "resourceVersion") ?? "",
  }),
};

let sent: { method: string; path: string; body: Json | undefined }[];
let unreachable = false;

beforeEach(() => {
  unreachable = false;
  sent = [];
});

const refusal = (status: number, message: string) => answerOf(status, { kind: "Status", message });

/** Reads return the stored object; writes get these responses in turn. */
function writer(stored: ApiResponse, ...responses: readonly ApiResponse[]): Writer {
  const left = [...responses];
  const client: Client = {
    server: "https://test",
    request: async (method: string, path: string, options: RequestOptions = {}) => {
      if (unreachable) throw new ConnectionError("reset");
      sent.push({ method, path, body: options.body });
      return method === "GET" ? stored : (left.shift() ?? refusal(500, "not expected"));
    },
    stream: () => Promise.reject(new Error("not expected")),
    close: () => undefined,
  };
  const resources = {
    pathOf: async (resource: string, namespace = "", name = "") => `/${resource}/${namespace}/${name}`,
    discover: async () => undefined,
  };
  const send = createSender(client, resources, async () => "/widgets/shop/web");
  return new Writer(client, resources, send, "usher-resize");
}

const found = answerOf(200, STORED);
const methods = () => sent.map(({ method }) => method).join(" ");

test("a write is conditional on the version that was read, and its result is the difference", async () => {
  const warned = answerOf(200, WRITTEN, { warning: '299 - "one \\"a\\"", 299 - "two"' });
  expect(await writer(found, warned).write(resize)).toEqual({
    changes: ["~ spec.size 1 -> 2"],
    warnings: ['one "a"', "two"],
  });
  expect(sent[1]).toEqual({
    method: "PATCH",
    path: "/widgets/shop/web?fieldManager=usher-resize",
    body: [
      { op: "replace", path: "/spec/size", value: 2 },
      { op: "add", path: "/metadata/resourceVersion", value: "7" },
    ],
  });
});

const APPLY: PlannedChange = {
  kind: "Widget",
  of: OF,
  plan: () => ({ apply: { metadata: { name: "web" } }, resourceVersion: undefined }),
};
const DELETE: PlannedChange = { kind: "Widget", of: OF, plan: () => ({ delete: OF, resourceVersion: "7" }) };
const absent = refuse(404, "NotFound", "web");

test.each<[string, PlannedChange, ApiResponse, ApiResponse, string[]]>([
  ["patch", resize, found, answerOf(200, WRITTEN), ["~ spec.size 1 -> 2"]],
  ["patch without effect", resize, found, answerOf(200, { ...STORED, metadata: {} }), []],
  ["apply", APPLY, absent, answerOf(201, WRITTEN), ["+ created"]],
  ["delete", DELETE, found, answerOf(200, {}), ["- deleted"]],
])("a dry run stores nothing: %s", async (_, change, stored, response, changes) => {
  expect(await writer(stored, response).dryRun(change)).toMatchObject({ changes });
  const writes = sent.filter(({ method }) => method !== "GET");
  // The API server ignores the query of a deletion that has a body.
  const dry = (one: (typeof writes)[number] | undefined) =>
    one?.method === "DELETE" ? at(one.body as Json, "dryRun", 0) : /dryRun=(\w+)/.exec(one?.path ?? "")?.[1];
  expect(writes.map(dry)).toEqual(["All"]);
});

test("a plan without a write, or one that fails, sends nothing", async () => {
  expect(await writer(found).write({ ...resize, plan: () => "unchanged" })).toEqual({
    changes: [],
    warnings: [],
  });
  expect(await writer(found).write({ ...resize, plan: () => ({ failed: "not found" }) })).toEqual({
    failed: "not found",
  });
  expect(methods()).toBe("GET GET");
});

test("an unreachable API server ends the dry run, and fails a write", async () => {
  const broken = writer(found);
  unreachable = true;
  await expect(broken.dryRun(resize)).rejects.toThrow("reset");
  expect(await broken.write(resize)).toEqual({ failed: expect.stringMatching(/^Widget shop\/web: .*reset/) });
});

test("a conflict is planned again from a new read, a limited number of times", async () => {
  const conflict = refusal(409, "conflict");
  expect(await writer(found, conflict, conflict, answerOf(200, WRITTEN)).write(resize)).toHaveProperty(
    "changes",
  );
  expect(methods()).toBe("GET PATCH GET PATCH GET PATCH");
  const failed = await writer(found, ...Array.from({ length: 9 }, () => conflict)).write(resize);
  expect(failed).toMatchObject({ failed: expect.stringContaining("409") });
});

test("an object that appears before its creation is not overwritten", async () => {
  expect(await writer(found).write(APPLY)).toEqual({ failed: "Widget shop/web: was created meanwhile" });
  expect(sent.every(({ method }) => method === "GET")).toBe(true);
});

test("a failing outcome undoes the write, unless it was a dry run", async () => {
  const failing: PlannedChange = { ...resize, outcome: () => ({ failed: "no effect", undo: UNDO }) };
  expect(await writer(found, answerOf(200, WRITTEN), found).write(failing)).toEqual({ failed: "no effect" });
  expect(sent.at(-1)?.body).toEqual([
    ...UNDO.patch,
    { op: "add", path: "/metadata/resourceVersion", value: "8" },
  ]);
  sent = [];
  expect(await writer(found, answerOf(200, WRITTEN)).dryRun(failing)).toEqual({ failed: "no effect" });
  expect(methods()).toBe("GET PATCH");
});

test.each([
  [
    refusal(403, 'widgets "web" is forbidden: User "dev" cannot patch'),
    /^not allowed to patch: .*cannot patch/,
  ],
  [refusal(403, 'admission webhook "x" denied the request: no'), /^admission webhook/],
  [refusal(500, "broken"), /500: broken/],
])("a refusal is reported with its reason: %#", async (response, message) => {
  expect(await writer(found, response).write(resize)).toMatchObject({
    failed: expect.stringMatching(message),
  });
});
