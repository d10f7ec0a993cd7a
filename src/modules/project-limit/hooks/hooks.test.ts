import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { assemblyOf } from "../../../../test/builders/evaluation.ts";
import { limitsCame, MODERN, projectRequest, versionOf } from "../../../../test/builders/project-limit.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../../core/installation/installation.ts";
import type { JsonObject } from "../../../core/json.ts";
import { serviceAccountOf } from "../../../core/kubernetes/principals.ts";
import type { Assembly } from "../../../core/module/assembly.ts";
import { hookWants } from "../../../core/module/hook.ts";
import { webhookConfigurations } from "../../../core/registration/webhooks.ts";
import type { Change } from "../../../core/view/view.ts";
import { projectLimit } from "../index.ts";
import { SERVICE_ACCOUNT_PATTERNS } from "./conditions.ts";

const SINGLE = { limits: [{ maxProjects: 2 }] };
const SPEC = { limits: [{ maxProjects: 2 }], namespaces: {} };

/** A summary of the registered hooks. */
function registered(spec: JsonObject | undefined, installation: Installation = MODERN) {
  const changes = spec === undefined ? [] : [limitsCame(spec)];
  const { declaredHooks } = assemblyOf([projectLimit], changes, installation);
  const { mutating, validating, notes } = webhookConfigurations(declaredHooks, installation, {
    endpoint: { url: "https://usher.example" },
  });
  expect(notes).toEqual([]);
  const all = [mutating, validating].flatMap(({ webhooks }) => webhooks as JsonObject[]);
  return all.map((webhook) => ({
    name: String(webhook["name"]).replace(/\.usher\.dev$/, ""),
    closed: webhook["failurePolicy"] === "Fail",
    rules: (webhook["rules"] as JsonObject[]).flatMap(({ resources, operations }) =>
      (resources as string[]).map((resource) => `${(operations as string[]).join()} ${resource}`),
    ),
    conditions: ((webhook["matchConditions"] ?? []) as JsonObject[]).map(({ name }) => name),
    timeoutSeconds: webhook["timeoutSeconds"],
    sideEffects: webhook["sideEffects"],
  }));
}

describe("registered hooks", () => {
  test("nothing without the object, nor for one of another name", () => {
    expect(registered(undefined)).toEqual([]);
    const { declaredHooks } = assemblyOf([projectLimit], [limitsCame(SPEC, "other")], MODERN);
    expect(declaredHooks.flatMap(({ rules }) => rules)).toEqual([]);
  });

  test("without namespaces: only ProjectRequests", () => {
    expect(registered({ limits: [{ maxProjects: 2 }] })).toEqual([
      {
        name: "project-limit",
        closed: true,
        rules: ["CREATE projectrequests"],
        conditions: ["can-be-limited"],
        timeoutSeconds: 5,
        sideEffects: "NoneOnDryRun",
      },
    ]);
  });

  test("with extensions off the match condition exempts no identity, and b64: names are system users", () => {
    const expression = (extensions: string) => {
      const { declaredHooks } = assemblyOf([projectLimit], [limitsCame({ ...SINGLE, extensions })], MODERN);
      return declaredHooks.find(({ name }) => name === "project-limit")?.conditions?.[0]?.expression;
    };
    expect(expression("On")).toMatch(/system:masters.*b64:/);
    expect(expression("Disabled")).toMatch(/^!false && /);
    expect(expression("Disabled")).not.toContain("b64:");
  });

  test("the way to fail, the timeout and side effects follow the object", () => {
    expect(registered({ failurePolicy: "Ignore", timeoutSeconds: 9, count: "BestEffort" })).toMatchObject([
      { closed: false, timeoutSeconds: 9, sideEffects: "None" },
    ]);
  });

  test("with namespaces: every route to the requester except deletion, and only users that can be limited meet a fail-closed hook", () => {
    const routes = ["CREATE,UPDATE namespaces", "UPDATE namespaces/finalize", "UPDATE namespaces/status"];
    const all = registered(SPEC);
    expect(all.map(({ name, closed, conditions }) => ({ name, closed, conditions }))).toEqual([
      { name: "project-limit-requester", closed: false, conditions: ["requester-changes"] },
      { name: "project-limit", closed: true, conditions: ["can-be-limited"] },
      {
        name: "project-limit-namespaces",
        closed: true,
        conditions: ["can-be-limited", "requester-changes"],
      },
      {
        name: "project-limit-namespaces-opened",
        closed: false,
        conditions: ["can-be-limited", "requester-changes"],
      },
      {
        name: "project-limit-namespaces-unlimited",
        closed: false,
        conditions: ["only-stamped", "requester-changes"],
      },
    ]);
    for (const { name, rules } of all) if (name !== "project-limit") expect(rules.toSorted()).toEqual(routes);
  });

  test.each([
    ["before 1.28", { ...DEFAULT_INSTALLATION, ...versionOf("v1.27.9") }],
    ["of an unknown version", DEFAULT_INSTALLATION],
  ])(
    "an API server %s has no match conditions: namespaces are fail-open, and finalizing waits for nothing",
    (_, installation) => {
      const all = registered(SPEC, installation);
      expect(all.map(({ name, closed, conditions }) => ({ name, closed, conditions }))).toEqual([
        { name: "project-limit-requester", closed: false, conditions: [] },
        { name: "project-limit", closed: true, conditions: [] },
        { name: "project-limit-namespaces", closed: false, conditions: [] },
      ]);
      expect(all.flatMap(({ rules }) => rules).filter((rule) => rule.includes("/"))).toEqual([]);
    },
  );
});

describe("while the operand's webhook is registered", () => {
  const RULE = {
    apiGroups: ["project.openshift.io"],
    apiVersions: ["v1"],
    resources: ["projectrequests"],
    operations: ["CREATE"],
    scope: "Cluster",
  };
  const came = (...webhooks: JsonObject[]): Change => ({
    resource: "validatingwebhookconfigurations.admissionregistration.k8s.io",
    namespace: "",
    name: "projectrequestlimits.admission.project.openshift.io",
    object: { metadata: { name: "projectrequestlimits.admission.project.openshift.io" }, webhooks },
  });
  const names = (assembly: Assembly) =>
    (
      webhookConfigurations(assembly.declaredHooks, MODERN, { endpoint: { url: "https://usher.example" } })
        .validating["webhooks"] as JsonObject[]
    ).map(({ name }) => name);

  test("usher's hook for ProjectRequests is withdrawn, still answers late calls, and is back immediately", () => {
    const assembly = assemblyOf([projectLimit], [limitsCame(SPEC)], MODERN);
    const before = names(assembly);
    expect(before).toContain("project-limit.usher.dev");
    assembly.apply([came({ rules: [RULE] })]);
    expect(names(assembly)).toEqual(before.filter((name) => name !== "project-limit.usher.dev"));
    const request = projectRequest({ username: "bob", groups: [] });
    expect(assembly.hooks.filter((hook) => hookWants(hook, request)).map(({ name }) => name)).toEqual([
      "project-limit",
    ]);
    assembly.apply([{ ...came(), object: undefined }]);
    expect(names(assembly)).toEqual(before);
    const { object, ...change } = came({ rules: [RULE] });
    const leaving = { "projectrequestlimits.operator.project.openshift.io/leaving": "2026-01-01T00:00:00Z" };
    assembly.apply([{ ...change, object: { ...object, metadata: { annotations: leaving } } }]);
    expect(names(assembly), "while it is still called, and is about to go").toEqual(before);
  });

  test.each<[string, JsonObject[]]>([
    ["without webhooks", []],
    ["of another resource", [{ rules: [{ ...RULE, resources: ["projects"] }] }]],
    ["of another operation", [{ rules: [{ ...RULE, operations: ["UPDATE"] }] }]],
    ["of another version", [{ rules: [{ ...RULE, apiVersions: ["v2"] }] }]],
    ["of some objects", [{ rules: [RULE], objectSelector: { matchLabels: { a: "b" } } }]],
    ["of objects in namespaces", [{ rules: [{ ...RULE, scope: "Namespaced" }] }]],
    ["without rules", [{}]],
  ])("one %s does not replace it", (_, webhooks) => {
    const assembly = assemblyOf([projectLimit], [limitsCame(SPEC), came(...webhooks)], MODERN);
    expect(names(assembly)).toContain("project-limit.usher.dev");
  });
});

test("the pattern of service accounts is that of the decision", () => {
  const patterns = SERVICE_ACCOUNT_PATTERNS.map((pattern) => new RegExp(pattern));
  const part = fc.oneof(
    fc.string({ unit: fc.constantFrom("a", "1", "-", ".", ":", "A"), maxLength: 8 }),
    fc.constantFrom("a".repeat(63), "a".repeat(64), "b".repeat(253), "b".repeat(254)),
  );
  fc.assert(
    fc.property(fc.array(part, { maxLength: 3 }), (parts) => {
      const username = ["system:serviceaccount", ...parts].join(":");
      expect(patterns.every((pattern) => pattern.test(username))).toBe(
        serviceAccountOf(username) !== undefined,
      );
    }),
    { numRuns: 2_000 },
  );
});
