import { describe, expect, test } from "vitest";
import { z } from "zod";
import { kindOf } from "../../../test/builders/kind.ts";
import { answerOf, NO_SUCH_API, refuse, TestApiServer } from "../../../test/support/cluster/api-server.ts";
import { SEATING } from "../../../test/support/operator/installation.ts";
import { type JsonObject, stringAt } from "../../core/json.ts";
import { Store } from "../../core/view/store.ts";
import { brokenPolicies, changedAnswers, storedObjects } from "./stored-policies.ts";

const KIND = kindOf("test.usher.dev", "Seating", {
  scope: "Namespaced",
  versions: [{ name: "v1", storage: true, spec: z.strictObject({ row: z.string() }) }],
});

const PATH = "/apis/test.usher.dev/v1/seatings";

test("reports invalid policies with their problems, and no valid ones", () => {
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

test("lists all pages, and each object has its kind", async () => {
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

describe("an upgrade", () => {
  const kind = {
    ...KIND,
    changedAnswer: {
      field: "row",
      concerns: (object: JsonObject) => stringAt(object, "spec", "row") === "a",
      meaning: "they sit in row b from now on",
    },
  };
  const module = { ...SEATING, kinds: [kind] };
  const crd = (description: string): JsonObject => ({
    metadata: { name: "seatings.test.usher.dev" },
    spec: {
      versions: [
        {
          storage: true,
          schema: { openAPIV3Schema: { properties: { spec: { properties: { row: { description } } } } } },
        },
      ],
    },
  });
  const listed = (live: JsonObject | undefined, count: number) => {
    const server = new TestApiServer();
    server.put(`${PATH}/other`, { metadata: { name: "other" }, spec: { row: "b" } });
    for (let i = 0; i < count; i++)
      server.put(`${PATH}/p${i}`, { metadata: { name: `p${i}`, namespace: "hall" }, spec: { row: "a" } });
    return changedAnswers(server.client, [module], [{ object: crd("new"), live }]);
  };

  test("lists the policies whose result changes, if the stored CRD is of an earlier version", async () => {
    expect(await listed(crd("old"), 1)).toEqual([
      "1 stored policy is answered otherwise\n  Seating hall/p0\n  they sit in row b from now on",
    ]);
    const [finding = ""] = await listed(crd("old"), 7);
    expect(finding).toMatch(/^7 stored policies are answered otherwise\n.*p4\n {2}and 2 more\n/s);
    expect(finding).not.toContain("other\n");
  });

  test.each<[string, JsonObject | undefined, number]>([
    ["no CRD is stored", undefined, 3],
    ["the stored CRD is of this version", crd("new"), 3],
    ["no policy is concerned", crd("old"), 0],
  ])("lists nothing if %s", async (_what, live, count) => {
    expect(await listed(live, count)).toEqual([]);
  });
});
