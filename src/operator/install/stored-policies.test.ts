import { expect, test } from "vitest";
import { z } from "zod";
import { kindOf } from "../../../test/builders/kind.ts";
import { answerOf, NO_SUCH_API, refuse, TestApiServer } from "../../../test/support/cluster/api-server.ts";
import { Store } from "../../core/view/store.ts";
import { brokenPolicies, storedObjects } from "./stored-policies.ts";

const KIND = kindOf("test.usher.dev", "Seating", {
  scope: "Namespaced",
  versions: [{ name: "v1", storage: true, spec: z.strictObject({ row: z.string() }) }],
});

const PATH = "/apis/test.usher.dev/v1/seatings";

test("says which policies break the rules and how, and nothing of those that keep them", () => {
  const policy = (name: string, spec: object) => ({
    apiVersion: "test.usher.dev/v1",
    kind: "Seating",
    metadata: { name, namespace: "hall" },
    spec: { ...spec },
  });
  const broken = brokenPolicies(KIND, [policy("good", { row: "1" }), policy("bad", { row: 1 })], new Store());
  expect(broken).toEqual([
    { kind: "Seating", namespace: "hall", name: "bad", problems: [expect.stringMatching(/^spec\.row: /)] },
  ]);
});

test("lists all pages, and each object says what it is", async () => {
  const server = new TestApiServer();
  for (let i = 0; i < 1_201; i++) server.put(`${PATH}/p${i}`, {});
  const found = await storedObjects(server.client, KIND);
  expect(found).toHaveLength(1_201);
  expect(found[0]).toMatchObject({ apiVersion: "test.usher.dev/v1", kind: "Seating" });
  // 25, 50, 100, 200, 400, 426.
  expect(server.count("GET 200")).toBe(6);
});

test("a kind that is not served has no objects; one that can't be listed is an error", async () => {
  const server = new TestApiServer();
  server.fault = (_, path) => (path === "/apis" ? answerOf(200, { groups: [] }) : NO_SUCH_API);
  expect(await storedObjects(server.client, KIND)).toEqual([]);
  server.fault = () => refuse(403, "Forbidden");
  await expect(storedObjects(server.client, KIND)).rejects.toThrow(/seatings.*403/);
});
