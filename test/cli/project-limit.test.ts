// The commands of project-limit on files.
import { describe, expect, test } from "vitest";
import { parse } from "yaml";
import { folder, ROOT, usher } from "./usher.ts";

const EXAMPLES = `${ROOT}/examples/project-limit`;

describe("usher project-limit usage", () => {
  test("shows the number and the limit of projects of each user", async () => {
    const { out, code } = await usher(["project-limit", "usage", "--source", EXAMPLES]);
    expect(code).toBe(0);
    expect(out).toMatch(/\nalice +2 +2 +full +limits\[5\] +shop, shop-test\n/);
    expect(out).toContain("\n3 users with projects, 1 at or over the limit\n");
  });

  test("--at-limit as JSON lists only users at their limit", async () => {
    const { out } = await usher(["project-limit", "usage", "--source", EXAMPLES, "--at-limit", "-o", "json"]);
    expect(JSON.parse(out)).toEqual({
      apiVersion: "cli.usher.dev/v1",
      kind: "ProjectLimitUsage",
      problems: [],
      users: [
        {
          subject: "alice",
          count: 2,
          names: ["shop", "shop-test"],
          max: 2,
          rule: "limits[5]",
          state: "full",
        },
      ],
    });
  });

  test("exits with 1 when users are over their limit, and reports when no limit exists", async () => {
    const namespaces = `{ apiVersion: v1, kind: Namespace, metadata: { name: a, annotations: { openshift.io/requester: bob } } }`;
    const limit =
      "apiVersion: operator.project.openshift.io/v1\nkind: ProjectRequestLimit\nmetadata: {name: cluster}\nspec: {limits: [{maxProjects: 1}]}\n";
    const idle = await usher([
      "project-limit",
      "usage",
      "--source",
      folder({ "c.yaml": `${limit}---\n${namespaces}` }),
    ]);
    expect(idle.err).toMatch(
      /ProjectRequestLimit cluster: nothing is limited: .* add spec\.namespaces: \{\}/,
    );
    const none = await usher(["project-limit", "usage", "--source", folder({ "c.yaml": namespaces })]);
    expect(none.code).toBe(0);
    expect(none.err).toContain("There is no ProjectRequestLimit named cluster");
    const zero = `${namespaces}\n---\n{ apiVersion: operator.project.openshift.io/v1, kind: ProjectRequestLimit, metadata: { name: cluster }, spec: { limits: [{ maxProjects: 0 }] } }`;
    expect((await usher(["project-limit", "usage", "--source", folder({ "c.yaml": zero })])).code).toBe(1);
  });
});

describe("usher project-limit import", () => {
  const imported = (text: string, ...args: string[]) =>
    usher(["project-limit", "import", "-", ...args], { stdin: text });
  const resource = (spec: object) => ({
    apiVersion: "operator.project.openshift.io/v1",
    kind: "ProjectRequestLimit",
    metadata: { name: "cluster" },
    spec,
  });
  const LIMITS = [{ selector: { level: "gold" }, maxProjects: 10 }, { maxProjects: 1 }];

  test.each(["v1", "requestlimit.project.openshift.io/v1", "project.openshift.io/v1"])(
    "reads a bare configuration of %s",
    async (apiVersion) => {
      const text = JSON.stringify({
        apiVersion,
        kind: "ProjectRequestLimitConfig",
        limits: LIMITS,
        maxProjectsForSystemUsers: 5,
        maxProjectsForServiceAccounts: null,
      });
      const { out, code } = await imported(text);
      expect(code).toBe(0);
      expect(parse(out)).toEqual(resource({ limits: LIMITS, maxProjectsForSystemUsers: 5 }));
      expect(JSON.parse((await imported(text, "-o", "json")).out)).toEqual(
        resource({ limits: LIMITS, maxProjectsForSystemUsers: 5 }),
      );
    },
  );

  test("reads a master-config.yaml", async () => {
    const { out, code } = await usher([
      "project-limit",
      "import",
      `${ROOT}/examples/configurations/master-config.yaml`,
    ]);
    expect(code).toBe(0);
    expect(parse(out)).toMatchObject({
      metadata: { name: "cluster" },
      spec: { maxProjectsForSystemUsers: 5 },
    });
  });

  test("names fields that were not converted, rules that never match, and differences to the plugin", async () => {
    const text = JSON.stringify({
      apiVersion: "v1",
      kind: "ProjectRequestLimitConfig",
      limits: [{ maxProjects: 1 }, { selector: { a: "b" }, maxProjects: 3, groups: ["x"] }],
      maximum: 3,
    });
    for (const output of ["table", "yaml", "json"]) {
      const { err, out, code } = await imported(text, "-o", output);
      expect(code).toBe(0);
      expect(parse(out)).toEqual(
        resource({ limits: [{ maxProjects: 1 }, { selector: { a: "b" }, maxProjects: 3 }] }),
      );
      expect(err.split("\n")).toEqual([
        "maximum: not converted, because the plugin has no such field",
        "limits[1].groups: not converted, because the plugin has no such field",
        "spec.limits[1]: can never match: limits[0] matches the same users and comes first",
        "differs from the plugin: exempt, and limited by the plugin: group system:masters, group system:serviceaccounts:kube-system, group system:serviceaccounts:openshift-apiserver",
        "differs from the plugin: concurrent requests are counted exactly; the plugin admits more than the limit",
        "differs from the plugin: users whose name begins with b64: are ordinary users; to the plugin they are system users",
        "differs from the plugin: without User objects in the cluster users have no labels; the plugin refuses the request",
        "add extensions: Disabled to spec for the answers of OpenShift 3.11",
        "",
      ]);
    }
    expect((await imported(text, "-q")).err).toBe("");
  });

  test.each([
    ["apiVersion: v2\nkind: ProjectRequestLimitConfig\n", /use v1 or requestlimit/],
    [
      "apiVersion: v1\nkind: ProjectRequestLimitConfig\nlimits: [{ maxProjects: -1 }]\n",
      /limits\[0\]\.maxProjects/,
    ],
    ["apiVersion: v1\nkind: MasterConfig\nadmissionConfig: {}\n", /holds no configuration/],
    ["apiVersion: v1\nkind: ConfigMap\nmetadata: { name: a }\n", /ProjectRequestLimitConfig.* is expected/],
  ])("rejects input that it can't convert", async (text, message) => {
    const { code, err, out } = await imported(text);
    expect(code).toBe(2);
    expect(err).toMatch(message);
    expect(out).toBe("");
  });
});
