import { expect, test } from "vitest";
import { responseOf, review, testSource } from "../../../test/support/admission/example-cluster.ts";
import type { Source } from "../../core/evaluate/source.ts";
import type { JsonObject } from "../../core/json.ts";
import { SILENT } from "../../core/log.ts";
import { ReviewHandler } from "./handle.ts";

const log = SILENT;

async function denialOf(path: string, body: JsonObject = review(), source: Partial<Source> = {}) {
  const { handle } = new ReviewHandler({ source: testSource(source), log });
  const response = responseOf(await handle(Buffer.from(JSON.stringify(body)), path));
  expect(response["allowed"]).toBe(false);
  return response["status"];
}

const WEB = { name: "web", group: "", kind: "pods" };

test.each<[string, string, string]>([
  ["a module's", "/validate/refuse", "USHER-T01"],
  ["a broken module's", "/validate/throws-closed", "USHER-E01"],
])("%s denial names the object and the reason", async (_, path, reason) => {
  expect(await denialOf(path)).toMatchObject({
    details: { ...WEB, causes: [{ reason, message: expect.any(String) }] },
  });
});

test("a denial for a record that could not be written names the object and the reason", async () => {
  const commit = async () => ({ failed: "ledger is busy" });
  const fetch: Source["fetch"] = async (needs) => needs.map(() => ({ absent: "NotFound" }));
  expect(await denialOf("/validate/record", review(), { commit, fetch })).toMatchObject({
    details: { ...WEB, causes: [{ message: "ledger is busy" }] },
  });
});

test("a denial for a fault outside every module names the object and the reason", async () => {
  const source = testSource();
  const assembly = Object.create(source.assembly, {
    hooks: { get: () => source.assembly.hooks },
    evaluator: {
      value: () => {
        throw new Error("inner workings");
      },
    },
  });
  expect(await denialOf("/validate/refuse", review(), { assembly })).toEqual({
    code: 500,
    reason: "InternalError",
    message: "internal error handling admission request (USHER-E01)",
    details: {
      ...WEB,
      causes: [{ reason: "InternalError", message: "internal error handling admission request (USHER-E01)" }],
    },
  });
});

test.each<[string, JsonObject, object]>([
  ["a wrong field elsewhere", { userInfo: 5 }, WEB],
  [
    "no name yet",
    { name: "", object: { metadata: { generateName: "web-" } }, userInfo: 5 },
    { ...WEB, name: "web-" },
  ],
  ["an invalid name", { name: 5 }, WEB],
  ["an unreadable resource", { resource: "pods" }, {}],
])("denies an undecodable request with the readable fields: %s", async (_, changes, details) => {
  expect(await denialOf("/validate/refuse", review(changes))).toMatchObject({
    code: 400,
    details: { ...details, causes: [{ reason: "BadRequest", message: expect.stringContaining("request.") }] },
  });
});
