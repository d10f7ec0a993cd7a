// Cases that upstream's tests do not cover, through the whole module.
import { describe, expect, test } from "vitest";
import {
  type Given,
  judged,
  namespaceRequest,
  project,
  projectCame,
  projectRequest,
  projects,
  userInfo,
} from "../../../../test/builders/project-limit.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import { responseOf } from "../../../core/evaluate/response.ts";
import type { JsonObject } from "../../../core/json.ts";

const ONE = { limits: [{ maxProjects: 1 }] };
const ACCOUNT = "system:serviceaccount:shop:ci";

async function outcome(spec: JsonObject, request: AdmissionRequest, given: Given = {}): Promise<string> {
  const { denials } = await judged(spec, request, given);
  const [denial] = denials;
  return denial === undefined ? "allowed" : `${denial.code} ${/USHER-Q\d+/.exec(denial.message)}`;
}

describe.each(["Exact", "BestEffort"])("counting %s", (count) => {
  const of = (spec: JsonObject, username: string, has: number, given: Given = {}) =>
    outcome({ ...spec, count }, projectRequest(userInfo(username)), {
      changes: projects(username, has),
      ...given,
    });

  test.each([
    ["a User that does not exist", ONE, "bob", 0, { users: {} }, "404 USHER-Q02"],
    ["a User that does not exist, without limits", {}, "bob", 5, { users: {} }, "allowed"],
    [
      "a User that does not exist, named by a rule",
      { limits: [{ users: ["bob"], maxProjects: 1 }] },
      "bob",
      1,
      { users: {} },
      "403 USHER-Q01",
    ],
    ["no User API: no labels", ONE, "bob", 1, { users: undefined }, "403 USHER-Q01"],
    [
      "no User API: selectors never match",
      { limits: [{ selector: { a: "b" }, maxProjects: 0 }] },
      "bob",
      9,
      { users: undefined },
      "allowed",
    ],
    ["a maximum of 0", { limits: [{ maxProjects: 0 }] }, "bob", 0, {}, "403 USHER-Q01"],
    [
      "a rule of 0 before one without a maximum",
      { limits: [{ maxProjects: 0 }, {}] },
      "bob",
      0,
      {},
      "403 USHER-Q01",
    ],
    ["null is unlimited", { limits: [{ maxProjects: null }, { maxProjects: 0 }] }, "bob", 9, {}, "allowed"],
    ["no rule matches", { limits: [{ selector: { a: "b" }, maxProjects: 0 }] }, "bob", 9, {}, "allowed"],
    ["a service account without a maximum", ONE, ACCOUNT, 9, {}, "allowed"],
    [
      "a service account at its maximum",
      { maxProjectsForServiceAccounts: 2 },
      ACCOUNT,
      2,
      {},
      "403 USHER-Q01",
    ],
    ["a service account below", { maxProjectsForServiceAccounts: 2 }, ACCOUNT, 1, {}, "allowed"],
    ["a service account with 0", { maxProjectsForServiceAccounts: 0 }, ACCOUNT, 0, {}, "403 USHER-Q01"],
    [
      "a malformed service account is a system user",
      { maxProjectsForServiceAccounts: 0 },
      "system:serviceaccount:x",
      9,
      {},
      "allowed",
    ],
    [
      "as is one in capitals",
      { maxProjectsForSystemUsers: 0 },
      "system:serviceaccount:X:y",
      0,
      {},
      "403 USHER-Q01",
    ],
    [
      "as is one of three parts",
      { maxProjectsForSystemUsers: 0 },
      "system:serviceaccount:a:b:c",
      0,
      {},
      "403 USHER-Q01",
    ],
    ["b64: names are users", ONE, "b64:YWxpY2U=", 1, {}, "403 USHER-Q01"],
    ["with more colons too", ONE, "b64:a:b", 1, {}, "403 USHER-Q01"],
    ["but not with a slash", ONE, "b64:a/b", 9, {}, "allowed"],
    ...["a/b", "a%2Fb", ".", "..", "~", "kube:admin"].flatMap((name) => [
      [`${name} is a system user`, ONE, name, 9, { users: {} }, "allowed"] as const,
      [
        `${name} at the maximum`,
        { maxProjectsForSystemUsers: 1 },
        name,
        1,
        { users: {} },
        "403 USHER-Q01",
      ] as const,
    ]),
  ] as const)("%s", async (_, spec, username, has, given, result) => {
    expect(await of(spec as JsonObject, username, has, given)).toBe(result);
  });

  test.each([
    ["without an annotation", project("a", undefined)],
    ["of a name in other letters", project("a", "Bob")],
    ["of an empty name", project("a", "")],
    ["of a longer name", project("a", "bob ")],
  ])("a namespace %s does not count", async (_, namespace) => {
    expect(await of(ONE, "bob", 0, { changes: [projectCame(namespace)] })).toBe("allowed");
  });

  test("a namespace being deleted counts until its phase is Terminating", async () => {
    const deleting = project("a", "bob");
    const metadata = { ...(deleting["metadata"] as JsonObject), deletionTimestamp: "2026-01-01T00:00:00Z" };
    const changes = [projectCame({ ...deleting, metadata })];
    expect(await of(ONE, "bob", 0, { changes })).toBe("403 USHER-Q01");
  });

  test.each([["__proto__"], ["constructor"], ["toString"]])(
    "a label %s is not an inherited property",
    async (key) => {
      const selector = JSON.parse(`{"${key}": "x"}`) as JsonObject;
      expect(await of({ limits: [{ selector, maxProjects: 0 }] }, "bob", 0)).not.toContain("USHER-Q01");
      const users = { bob: JSON.parse(`{"${key}": "x"}`) as JsonObject };
      if (key !== "__proto__")
        expect(await of({ limits: [{ selector, maxProjects: 0 }] }, "bob", 0, { users })).toBe(
          "403 USHER-Q01",
        );
    },
  );

  test("user names are not inherited properties either", async () => {
    for (const name of ["__proto__", "constructor"])
      expect(await of(ONE, name, 1, { users: undefined })).toBe("403 USHER-Q01");
  });

  test("service accounts may count by namespace", async () => {
    const spec = { count, maxProjectsForServiceAccounts: 2, serviceAccountsPer: "Namespace" };
    const changes = [
      projectCame(project("a", "system:serviceaccount:shop:one")),
      projectCame(project("b", "system:serviceaccount:shop:two")),
      projectCame(project("c", "system:serviceaccount:other:ci")),
    ];
    expect(await outcome(spec, projectRequest(userInfo(ACCOUNT)), { changes })).toBe("403 USHER-Q01");
    const other = projectRequest(userInfo("system:serviceaccount:other:ci"));
    expect(await outcome(spec, other, { changes })).toBe("allowed");
  });

  test.each([
    ["another operation", { operation: "UPDATE" }],
    [
      "another resource",
      { resource: { group: "project.openshift.io", version: "v1", resource: "projects" } },
    ],
    ["another group", { resource: { group: "", version: "v1", resource: "projectrequests" } }],
    ["another kind", { kind: { group: "project.openshift.io", version: "v1", kind: "Other" } }],
  ] as const)("%s passes", async (_, change) => {
    const request = projectRequest(userInfo("bob"), "new", change as Partial<AdmissionRequest>);
    expect(await outcome({ ...ONE, count }, request, { changes: projects("bob", 3) })).toBe("allowed");
  });

  test("a dry run over the limit is refused too", async () => {
    const request = projectRequest(userInfo("bob"), "new", { dryRun: true });
    expect(await outcome({ ...ONE, count }, request, { changes: projects("bob", 1) })).toBe("403 USHER-Q01");
  });

  test("the last free place is worth a warning", async () => {
    const spec = { limits: [{ maxProjects: 2 }], count };
    const warnings = async (has: number) => {
      const request = projectRequest(userInfo("bob"));
      const { findings } = await judged(spec, request, { changes: projects("bob", has) });
      return findings.filter(({ warn }) => warn !== undefined).map(({ message }) => message);
    };
    expect(await warnings(1)).toEqual(["this is the last of 2 project(s) that user bob may have"]);
    expect(await warnings(0)).toEqual([]);
  });

  test("groups and users must match too, any of a list", async () => {
    const spec = {
      count,
      limits: [
        { groups: ["devs", "ops"], users: ["bob", "eve"], maxProjects: 3 },
        { groups: ["devs"], maxProjects: 2 },
        { maxProjects: 1 },
      ],
    };
    const has = async (name: string, groups: readonly string[]) => {
      for (let max = 0; ; max++) {
        const given = { changes: projects(name, max) };
        if ((await outcome(spec, projectRequest(userInfo(name, groups)), given)) !== "allowed") return max;
      }
    };
    expect(await has("bob", ["ops"])).toBe(3);
    expect(await has("bob", [])).toBe(1);
    expect(await has("jim", ["x", "devs"])).toBe(2);
    expect(await has("jim", ["ops"])).toBe(1);
  });
});

test("a name that no namespace can have is left to the API server's own refusal", async () => {
  const asked = (length: number, has: number) =>
    outcome({ ...ONE, count: "Exact" }, projectRequest(userInfo("bob"), "x".repeat(length)), {
      changes: projects("bob", has),
    });
  for (const length of [254, 5_000]) expect(await asked(length, 0)).toBe("allowed");
  expect(await asked(253, 1)).toBe("403 USHER-Q01");
});

describe("the answer", () => {
  const statusOf = async (request: AdmissionRequest, changes: Given["changes"], spec: JsonObject = ONE) =>
    responseOf(await judged(spec, request, changes === undefined ? {} : { changes }))
      .status as unknown as JsonObject;

  test("has upstream's sentence, the number and the names", async () => {
    const status = await statusOf(projectRequest(userInfo("bob"), "third"), [
      projectCame(project("b", "bob")),
      projectCame(project("a", "bob")),
    ]);
    expect(status).toMatchObject({
      code: 403,
      reason: "Forbidden",
      message:
        'projectrequests.project.openshift.io "third" is forbidden: user bob cannot create more than 1 project(s). Has 2: a, b (USHER-Q01)',
      details: { name: "third", group: "project.openshift.io", kind: "projectrequests" },
    });
  });

  test("has at most ten names", async () => {
    const status = await statusOf(projectRequest(userInfo("bob")), projects("bob", 12));
    expect(status["message"]).toMatch(
      / Has 12: active-0, active-1, active-10, .*, active-7, … \(USHER-Q01\)$/,
    );
    expect(String(status["message"]).match(/active-/g)).toHaveLength(10);
  });

  test("names a Namespace as such, and no empty name", async () => {
    const spec = { limits: [{ maxProjects: 0 }], namespaces: {} };
    const status = await statusOf(namespaceRequest(userInfo("bob"), project("shop", "bob")), [], spec);
    expect(status["message"]).toBe(
      'namespaces "shop" is forbidden: user bob cannot create more than 0 project(s). Has 0 (USHER-Q01)',
    );
  });

  test("handles a generated name, and none", async () => {
    const generated = {
      apiVersion: "project.openshift.io/v1",
      kind: "ProjectRequest",
      metadata: { generateName: "x-" },
    };
    const request = projectRequest(userInfo("bob"), "", { object: generated });
    expect((await statusOf(request, projects("bob", 1)))["message"]).toContain('"x-" is forbidden');
    const none = projectRequest(userInfo("bob"), "", { object: { ...generated, metadata: {} } });
    expect((await statusOf(none, projects("bob", 1)))["message"]).toContain('"Unknown" is forbidden');
  });

  test("a missing User is a 404 about the user, with the remedy", async () => {
    const evaluation = await judged(ONE, projectRequest(userInfo("bob")), { users: {} });
    expect(responseOf(evaluation).status).toMatchObject({
      code: 404,
      reason: "NotFound",
      details: { name: "bob", group: "user.openshift.io", kind: "users" },
      message: expect.stringMatching(
        /^users\.user\.openshift\.io "bob" not found: .*create it.*\(USHER-Q02\)$/,
      ),
    });
  });

  test.each([
    [{ failed: "no", status: 403, reason: "Forbidden" }, 403, "Forbidden"],
    [{ failed: "slow" }, 503, "ServiceUnavailable"],
    [{ failed: "busy", status: 429, reason: "TooManyRequests" }, 429, "TooManyRequests"],
  ])("a failed lookup has its own code: %j", async (fact, code, reason) => {
    const evaluation = await judged(ONE, projectRequest(userInfo("bob")), { userFact: () => fact });
    expect(responseOf(evaluation).status).toMatchObject({
      code,
      reason,
      message: expect.stringContaining(`${fact.failed}; try again (USHER-Q03)`),
    });
  });

  test("an invalid object refuses the requests that it may limit, or warns", async () => {
    const spec = { limits: [{ maxProjects: -1 }] };
    expect(await outcome(spec, projectRequest(userInfo("bob")))).toBe("500 USHER-Q03");
    expect(await outcome(spec, projectRequest(userInfo("root", ["system:masters"])))).toBe("allowed");
    const open = await judged({ ...spec, failurePolicy: "Ignore" }, projectRequest(userInfo("bob")));
    expect(open).toMatchObject({ denials: [], findings: [{ code: "USHER-Q03", warn: expect.any(Number) }] });
  });

  test("exempt users and groups are never limited, by default the control plane's", async () => {
    const changes = projects("bob", 5);
    const as = (groups: readonly string[], spec: JsonObject = ONE) =>
      outcome(spec, projectRequest(userInfo("bob", groups)), { changes });
    expect(await as(["system:masters"])).toBe("allowed");
    expect(await as(["system:serviceaccounts:openshift-apiserver"])).toBe("allowed");
    expect(await as(["admins"])).toBe("403 USHER-Q01");
    expect(await as(["admins"], { ...ONE, exempt: { groups: ["admins"] } })).toBe("allowed");
    expect(await as(["system:masters"], { ...ONE, exempt: { groups: [] } })).toBe("403 USHER-Q01");
    expect(await as([], { ...ONE, exempt: { users: ["bob"] } })).toBe("allowed");
    expect(await as(["system:masters"], { ...ONE, exempt: { users: ["eve"] } })).toBe("allowed");
  });
});

const SEVERAL = {
  limits: [
    { users: ["eve"], maxProjects: 9 },
    { groups: ["devs"], maxProjects: 8 },
    { selector: { level: "gold" }, maxProjects: 7 },
    { maxProjects: 1 },
    { maxProjects: 2 },
  ],
};

test.each<[ReturnType<typeof userInfo>, JsonObject, [string, string, string][]]>([
  [
    userInfo("bob"),
    ONE,
    [
      ["limits[0]", "applies", "at most 1 project(s)"],
      ["", "applies", "limits[0]: user bob may have 1 project(s)"],
    ],
  ],
  [userInfo("bob"), {}, [["", "not", "user bob is not limited"]]],
  [userInfo("bob", ["system:masters"]), ONE, [["", "not", "user bob is exempt"]]],
  [
    userInfo("system:admin"),
    { ...ONE, maxProjectsForSystemUsers: 4 },
    [
      ["maxProjectsForSystemUsers", "applies", "user system:admin: at most 4 project(s)"],
      ["", "applies", "maxProjectsForSystemUsers: user system:admin may have 4 project(s)"],
    ],
  ],
  [
    userInfo("bob"),
    SEVERAL,
    [
      ["limits[0]", "not", "user bob is not one of its users"],
      ["limits[1]", "not", "none of its groups is the user's"],
      ["limits[2]", "not", "the User has no label level=gold"],
      ["limits[3]", "applies", "at most 1 project(s)"],
      ["limits[4]", "not", "limits[3] applies first"],
      ["", "applies", "limits[3]: user bob may have 1 project(s)"],
    ],
  ],
  [
    userInfo("bob"),
    { limits: [{ maxProjects: -1 }] },
    [["", "failed", expect.stringContaining("the spec is not valid")]],
  ],
])("a trace reports every evaluated limit: %j %j", async (user, spec, entries) => {
  const { trace } = await judged(spec, projectRequest(user), {}, "validate", true);
  expect(trace.map(({ rule = "", applies, why }) => [rule, applies, why])).toEqual(entries);
});
