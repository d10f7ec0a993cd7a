import { describe, expect, test } from "vitest";
import type { Json, JsonObject } from "../../../core/json.ts";
import type { CommandCall, CommandPlan, InputText } from "../../../core/module/command.ts";
import type { BackfillArgs } from "../declaration.ts";
import { backfillCode } from "./backfill-command.ts";

function planned(text: string): CommandPlan {
  const file: InputText = { name: "f", text };
  const call = { args: { file } } as CommandCall<BackfillArgs, Readonly<Record<string, unknown>>>;
  const result = backfillCode.run(call);
  if (!("changes" in result)) throw new Error("no plan");
  return result;
}

const stored = (annotations?: JsonObject): JsonObject => ({
  metadata: {
    name: "shop",
    resourceVersion: "7",
    creationTimestamp: "2026-01-01T00:00:10Z",
    ...(annotations === undefined ? {} : { annotations }),
  },
});

/** The result for one namespace, from the first line. */
const first = (text: string, object: JsonObject | undefined) => planned(text).changes[0]?.plan(object);

describe("lines of namespace,user", () => {
  test("name users, with or without a header, quotes, commas and comments", () => {
    const text =
      '\uFEFFnamespace,user\r\nshop,alice\n# later\n\nlab,cn=bob,dc=x\n"home","a ""b"""\nshop,alice\n';
    const { changes, errors } = planned(text);
    expect(changes.map(({ of }) => of.name)).toEqual(["shop", "lab", "home"]);
    expect(errors).toEqual([]);
    expect(changes[1]?.plan(stored())).toMatchObject({
      patch: [
        { op: "add", path: "/metadata/annotations", value: { "openshift.io/requester": "cn=bob,dc=x" } },
      ],
      resourceVersion: "7",
    });
    expect(changes[2]?.plan(stored())).toMatchObject({
      patch: [{ value: { "openshift.io/requester": 'a "b"' } }],
    });
  });

  test("that are wrong are named, and the others used", () => {
    const { changes, errors } = planned("shop\nA/b,alice\nlab,bob\nlab,eve\nx,");
    expect(changes).toHaveLength(1);
    expect(errors?.map((error) => error.slice(0, 4))).toEqual(["f:1:", "f:2:", "f:4:", "f:5:"]);
  });

  test.each([
    [
      "adds beside others",
      stored({ a: "b" }),
      { patch: [{ op: "add", path: "/metadata/annotations/openshift.io~1requester", value: "alice" }] },
    ],
    ["leaves the same", stored({ "openshift.io/requester": "alice" }), "unchanged"],
    [
      "keeps another",
      stored({ "openshift.io/requester": "eve" }),
      { failed: "requester is eve already; kept" },
    ],
    ["misses the namespace", undefined, { failed: "not found" }],
  ])("%s", (_, object, result) => {
    const found = first("shop,alice", object);
    if (typeof result === "string") expect(found).toBe(result);
    else expect(found).toMatchObject(result);
  });
});

describe("an audit log", () => {
  const event = (change: JsonObject = {}): JsonObject => ({
    kind: "Event",
    apiVersion: "audit.k8s.io/v1",
    stage: "ResponseComplete",
    verb: "create",
    requestURI: "/api/v1/namespaces",
    user: { username: "alice" },
    objectRef: { resource: "namespaces", name: "shop", apiVersion: "v1" },
    responseStatus: { code: 201 },
    requestReceivedTimestamp: "2026-01-01T00:00:09.500000Z",
    ...change,
  });
  const log = (...events: readonly Json[]) => events.map((one) => JSON.stringify(one)).join("\n");

  test("names the creators of namespaces and of ProjectRequests, impersonated users included", () => {
    const request = { resource: "projectrequests", apiGroup: "project.openshift.io", name: "lab" };
    const { changes, errors } = planned(
      log(
        event(),
        event({ objectRef: request, user: { username: "bob" } }),
        // The namespace of that request.
        event({
          objectRef: { resource: "namespaces", name: "lab" },
          user: { username: "system:serviceaccount:openshift-apiserver:openshift-apiserver-sa" },
        }),
        event({
          objectRef: { resource: "namespaces" },
          responseObject: { metadata: { name: "gen-x7" } },
          impersonatedUser: { username: "eve" },
        }),
        event({ responseStatus: { code: 403 }, objectRef: { resource: "namespaces", name: "no" } }),
        event({ stage: "RequestReceived", objectRef: { resource: "namespaces", name: "no" } }),
        event({
          requestURI: "/api/v1/namespaces?dryRun=All",
          objectRef: { resource: "namespaces", name: "no" },
        }),
        event({ objectRef: { resource: "pods", name: "no" } }),
      ),
    );
    expect(errors).toEqual([]);
    const users = changes.map(({ of, plan }) => [
      of.name,
      JSON.stringify(plan(stored())).match(/alice|bob|eve/)?.[0],
    ]);
    expect(users).toEqual([
      ["shop", "alice"],
      ["lab", "bob"],
      ["gen-x7", "eve"],
    ]);
  });

  test("does not guess: a later namespace of the same name, or a deleted one, is skipped", () => {
    expect(first(log(event({ requestReceivedTimestamp: "2025-12-31T23:00:00Z" })), stored())).toBe(
      "unchanged",
    );
    expect(first(log(event()), undefined)).toBe("unchanged");
  });

  test("reports unreadable input", () => {
    const { errors } = planned(`${log(event({ objectRef: { resource: "namespaces" } }))}\n{broken`);
    expect(errors).toEqual([
      "f:2: not an audit event in JSON",
      expect.stringContaining("1 creation(s) without the name of the namespace"),
    ]);
  });
});
