// Every case of upstream's own tests, through the whole module: 3.11's admission_test.go, validation_test.go and
// project_reqlimit_test.go.
import { describe, expect, test } from "vitest";
import {
  judged,
  limits,
  projectRequest,
  projects,
  userInfo,
} from "../../../../test/builders/project-limit.ts";
import type { JsonObject } from "../../../core/json.ts";
import { fieldPath } from "../../../core/path.ts";
import { checkObject } from "../../../core/policy/check.ts";
import { Store } from "../../../core/view/store.ts";
import { projectRequestLimit } from "../kinds.ts";
import { limitOf } from "../policy/limit.ts";
import type { ProjectLimits } from "../policy/policy.ts";
import { prepareLimits } from "../policy/prepare.ts";
import { usageOf } from "../projects.ts";

const MULTI: JsonObject = {
  limits: [
    { selector: { platinum: "yes" } },
    { selector: { gold: "yes" }, maxProjects: 10 },
    { selector: { silver: "yes" }, maxProjects: 3 },
    { selector: { bronze: "yes" }, maxProjects: 2 },
    { selector: {}, maxProjects: 1 },
  ],
};
const SINGLE: JsonObject = { limits: [{ maxProjects: 1 }] };

function prepared(spec: JsonObject): ProjectLimits {
  const { policy } = prepareLimits(limits(spec), { kind: "ProjectRequestLimit", name: "cluster" });
  if (policy === undefined) throw new Error("no policy");
  return policy;
}

describe("reading the configuration", () => {
  test("five rules: the first without a maximum, the last without a selector", () => {
    const levels = ["platinum", "gold", "silver", "bronze"];
    const { rules, invalid } = prepared({
      limits: [
        ...levels.map((level, i) => ({
          selector: { level },
          ...(i === 0 ? {} : { maxProjects: [0, 500, 100, 20][i] ?? 0 }),
        })),
        { selector: {}, maxProjects: 1 },
      ],
    });
    expect(invalid).toBeUndefined();
    expect(rules.map(({ maxProjects }) => maxProjects)).toEqual([undefined, 500, 100, 20, 1]);
    expect(rules.map(({ selector }) => selector.get("level"))).toEqual([...levels, undefined]);
  });

  test("one rule with a maximum alone", () => {
    expect(prepared(SINGLE).rules).toEqual([
      { selector: new Map(), groups: undefined, users: undefined, maxProjects: 1 },
    ]);
  });

  test.each([[{}], [{ limits: null }], [{ limits: [] }]])("%j limits no user", (spec) => {
    expect(prepared(spec)).toMatchObject({ rules: [], invalid: undefined });
  });
});

describe("the limit of a user", () => {
  test.each([
    [{ platinum: "yes" }, { unlimited: true }],
    [{ gold: "yes" }, { max: 10, rule: "limits[1]" }],
    [
      { silver: "yes", bronze: "yes" },
      { max: 3, rule: "limits[2]" },
    ],
    [{ unknown: "yes" }, { max: 1, rule: "limits[4]" }],
  ])("with labels %j", (labels, limit) => {
    const user = { found: { metadata: { labels } }, complete: true };
    expect(limitOf(prepared(MULTI), { username: "user", groups: [] }, user)).toEqual(limit);
  });
});

describe("the number of projects", () => {
  test.each([
    [1, 5, 4],
    [5, 1, 5],
    [1, 0, 1],
    [0, 1, 0],
    [0, 2, 0],
    [0, 3, 1],
    [2, 2, 2],
    [5, 3, 6],
  ])("%i active and %i terminating count as %i", (active, terminating, count) => {
    const some = (number: number, dying: boolean) =>
      Array.from({ length: number }, (_, i) => ({ name: `${dying}-${i}`, terminating: dying }));
    expect(usageOf([...some(active, false), ...some(terminating, true)]).count).toBe(count);
  });
});

describe.each(["Exact", "BestEffort"])("admission, counting %s", (count) => {
  const admits = async (
    spec: JsonObject | undefined,
    username: string,
    [active, terminating]: readonly [number, number],
    labels: JsonObject = {},
  ) => {
    const { denials } = await judged(
      spec === undefined ? undefined : { ...spec, count },
      projectRequest(userInfo(username)),
      { changes: projects(username, active, terminating), users: { [username]: labels } },
    );
    return denials.length === 0 ? "admitted" : `${denials[0]?.code} ${denials[0]?.reason}`;
  };

  const FORBIDDEN = "403 Forbidden";
  test.each([
    [1, MULTI, "user1", [0, 1], {}, "admitted"],
    [2, MULTI, "user2", [2, 2], { bronze: "yes" }, FORBIDDEN],
    [3, MULTI, "user3", [5, 3], { platinum: "yes" }, "admitted"],
    [4, MULTI, "user4", [1, 0], { unknown: "yes" }, FORBIDDEN],
    [5, {}, "user2", [2, 2], {}, "admitted"],
    [6, SINGLE, "user3", [5, 3], {}, FORBIDDEN],
    [7, SINGLE, "user1", [0, 1], {}, "admitted"],
    [8, undefined, "user3", [5, 3], {}, "admitted"],
    [9, SINGLE, "system:admin", [5, 0], {}, "admitted"],
  ] as const)("Admit %i", async (_, spec, user, has, labels, result) => {
    expect(await admits(spec, user, has, labels)).toBe(result);
  });

  const TIERS = {
    limits: [
      { selector: { level: "gold" }, maxProjects: 3 },
      { selector: { level: "silver" }, maxProjects: 2 },
      { maxProjects: 1 },
    ],
  };
  const SYSTEM = { limits: [{ maxProjects: 1 }], maxProjectsForSystemUsers: 1 };
  test.each([
    [TIERS, { regular: 0, silver: 2, gold: 2 }, ["admitted", FORBIDDEN, "admitted"]],
    [{}, { regular: 5, silver: 2, gold: 2 }, ["admitted", "admitted", "admitted"]],
    [SYSTEM, { regular: 0, silver: 1, gold: 0 }, ["admitted", FORBIDDEN, "admitted"]],
  ] as const)("integration: %j", async (spec, has, results) => {
    const found: string[] = [];
    for (const [user, number] of Object.entries(has))
      found.push(await admits(spec, user, [number, 0], { level: user }));
    expect(found).toEqual(results);
  });

  test("integration: system:admin creates foo, then bar", async () => {
    expect(await admits(SYSTEM, "system:admin", [0, 0])).toBe("admitted");
    expect(await admits(SYSTEM, "system:admin", [1, 0])).toBe(FORBIDDEN);
  });
});

describe("validation", () => {
  const problemsOf = (spec: JsonObject) => checkObject(projectRequestLimit, limits(spec), new Store());
  const two = [
    { selector: { level: "gold" }, maxProjects: 10 },
    { selector: { level: "silver" }, maxProjects: 1 },
  ];

  test.each([
    [{}],
    [{ limits: [{ selector: null, maxProjects: 1 }] }],
    [{ limits: two }],
    [{ limits: [{ maxProjects: 0 }], maxProjectsForSystemUsers: 0, maxProjectsForServiceAccounts: null }],
    // The same number in any spelling.
    [{ limits: [{ maxProjects: 1e3 }] }],
    [{ limits: [{ maxProjects: 2_147_483_647 }] }],
  ])("%j is valid", (spec) => expect(problemsOf(spec)).toEqual([]));

  test.each([
    [{ limits: [two[0], { maxProjects: -1 }] }, "spec.limits[1].maxProjects"],
    [{ limits: [...two, { selector: { "*invalid/label": "x" } }] }, "spec.limits[2].selector"],
    [{ limits: [{ selector: { a: "*" } }] }, "spec.limits[0].selector"],
    [{ limits: [{ maxProjects: "2" }] }, "spec.limits[0].maxProjects"],
    [{ limits: [{ maxProjects: 2.5 }] }, "spec.limits[0].maxProjects"],
    [{ limits: [{ maxProjects: 2_147_483_648 }] }, "spec.limits[0].maxProjects"],
    [{ limits: [{ maxProjects: true }] }, "spec.limits[0].maxProjects"],
    [{ maxProjectsForSystemUsers: -1 }, "spec.maxProjectsForSystemUsers"],
    [{ maxProjectsForServiceAccounts: "1" }, "spec.maxProjectsForServiceAccounts"],
    [{ limits: [{ groups: [] }] }, "spec.limits[0].groups"],
    [{ timeoutSeconds: 31 }, "spec.timeoutSeconds"],
    [{ timeoutSeconds: 0 }, "spec.timeoutSeconds"],
    [{ count: "exact" }, "spec.count"],
    [{ failurePolicy: "fail" }, "spec.failurePolicy"],
    [{ serviceAccountsPer: "account" }, "spec.serviceAccountsPer"],
  ])("%j is refused at %s", (spec, path) => {
    const found = problemsOf(spec as JsonObject).filter(({ severity }) => severity === "error");
    expect(found.map((one) => fieldPath(one.path))).toEqual([path]);
  });

  test("an unknown field is a warning", () => {
    expect(problemsOf({ limit: [] })).toMatchObject([{ path: ["spec", "limit"], severity: "warning" }]);
  });

  test.each([
    [[{ maxProjects: 1 }, { selector: { a: "b" } }], [1]],
    [[{ selector: { a: "b" } }, { selector: { a: "b", c: "d" } }], [1]],
    [[{ selector: { a: "b", c: "d" } }, { selector: { a: "b" } }, {}], []],
    [
      [{ groups: ["g", "h"] }, { groups: ["h"] }, { groups: ["h", "i"] }, { groups: ["g"], users: ["u"] }],
      [1, 3],
    ],
    [[{ users: ["u"] }, { groups: ["g"] }, {}, { users: ["u"] }], [3]],
  ])("of %j, rules %j can never match", (rules, shadowed) => {
    const found = problemsOf({ limits: rules });
    expect(found.map(({ path, severity }) => [path[2], severity])).toEqual(
      shadowed.map((i) => [i, "warning"]),
    );
  });

  test.each([
    [{ users: ["system:admin"] }, true],
    [{ users: ["system:serviceaccount:ci:bot", "a/b"] }, true],
    [{ users: ["system:admin", "bob"] }, false],
    [{ users: ["root"] }, true],
    [{ users: ["b64:x"] }, false],
    [{ groups: ["system:masters"] }, true],
    [{ groups: ["system:serviceaccounts:ci", "system:serviceaccounts"] }, true],
    [{ groups: ["system:masters", "devs"] }, false],
    [{ groups: ["system:authenticated"] }, false],
  ])("the rule %j matches no user that rules apply to: %j", (rule, isWarned) => {
    const exempt = { users: ["root"] };
    const warnings = problemsOf({ limits: [{ ...rule, maxProjects: 1 }], exempt });
    expect(warnings.map(({ path }) => path.join("."))).toEqual(isWarned ? ["spec.limits.0"] : []);
  });
});

describe("with extensions off", () => {
  const OFF: JsonObject = { ...SINGLE, extensions: "Disabled", maxProjectsForSystemUsers: 1 };
  const codes = async (spec: JsonObject, user: string, given: Parameters<typeof judged>[2]) =>
    (await judged(spec, projectRequest(userInfo(user, ["system:masters"])), given)).denials.map(
      ({ code }) => code,
    );

  test("limits system:masters, which is exempt by default", async () => {
    const changes = projects("system:admin", 1);
    expect(await codes({ ...OFF, extensions: "Enabled" }, "system:admin", { changes })).toEqual([]);
    expect(await codes(OFF, "system:admin", { changes })).toEqual([403]);
  });

  test("counts by best effort, and warns of no last project", async () => {
    expect(prepared(OFF).count).toBe("BestEffort");
    const { denials, findings, commits } = await judged(OFF, projectRequest(userInfo("bob")));
    expect({ denials, findings, commits }).toEqual({ denials: [], findings: [], commits: [] });
  });

  test("treats a name that begins with b64: as a system user's", () => {
    const bob = { username: "b64:Ym9i", groups: [] };
    expect(limitOf(prepared(OFF), bob, undefined)).toMatchObject({ rule: "maxProjectsForSystemUsers" });
    expect(limitOf(prepared(SINGLE), bob, undefined)).toEqual({ needsUser: true });
  });

  test("refuses users if the cluster serves no User objects", async () => {
    const on = { ...OFF, exempt: { groups: [] }, extensions: "Enabled" };
    expect(await codes(OFF, "bob", { users: undefined })).toEqual([404]);
    expect(await codes(on, "bob", { users: undefined })).toEqual([]);
  });

  test.each<[string, JsonObject]>([
    ["spec.serviceAccountsPer", { serviceAccountsPer: "Namespace" }],
    ["spec.count", { count: "Exact" }],
    ["spec.namespaces", { namespaces: {} }],
    ["spec.exempt", { exempt: { groups: [] } }],
    ["spec.trustedAnnotators", { trustedAnnotators: ["portal"] }],
    ["spec.limits[0].groups", { limits: [{ groups: ["a"] }] }],
    ["spec.limits[0].users", { limits: [{ users: ["a"] }] }],
  ])("refuses %s, which the plugin does not have", (path, spec) => {
    const errors = (written: JsonObject) =>
      checkObject(projectRequestLimit, limits(written), new Store())
        .filter(({ severity }) => severity === "error")
        .map((one) => fieldPath(one.path));
    expect(errors({ ...spec, extensions: "Disabled" })).toEqual([path]);
    expect(errors(spec)).toEqual([]);
  });
});
