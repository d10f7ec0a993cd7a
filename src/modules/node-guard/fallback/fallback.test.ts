// Webhook and fallback on random requests. test/e2e shows that the API server evaluates the expressions like this test.
import { expect, test } from "vitest";
import { override } from "../../../../test/builders/guard.ts";
import {
  fallbackRefuses,
  guardAssembly,
  INSTALLATION,
  isDocumented,
  type Names,
  NOW,
  nodeObjects,
  numbers,
  policyOf,
  randomRequest,
  webhookRefuses,
} from "../../../../test/support/node-guard/fallback.ts";
import { at, type JsonObject, listAt } from "../../../core/json.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import { compileAll } from "./compile.ts";

const NAMES: Names = {
  label: "guarded",
  listed: "listed",
  exact: "exact",
  tenant: "team-a",
  prefixed: "pre-1",
  prefix: "pre-",
  nodes: { guarded: ["cp-0", "cp-1"], free: "w-0" },
};
const NODES = nodeObjects(NAMES);

test.each(["Namespace", "Exact"] as const)(
  "with the scope %s both agree on 5,000 requests, except documented differences",
  async (scope) => {
    const assembly = guardAssembly([policyOf(NAMES, scope), ...NODES]);
    const compiled = compileAll(assembly.view, INSTALLATION, NOW);
    const random = numbers(scope === "Exact" ? 2 : 1);
    const counts = { both: 0, neither: 0, webhook: 0 };
    for (let i = 0; i < 5_000; i++) {
      const request = randomRequest(random, NAMES, i);
      const webhook = await webhookRefuses(request, assembly);
      const fallback = fallbackRefuses(request, compiled, NODES);
      const shown = JSON.stringify({ ...request, uid: undefined });
      if (fallback) expect(webhook, `stricter than the webhook: ${shown}`).toBe(true);
      if (webhook && !fallback) expect(isDocumented(request, NODES, scope === "Exact"), shown).toBe(true);
      counts[webhook && fallback ? "both" : webhook ? "webhook" : "neither"]++;
    }
    expect(Math.min(...Object.values(counts))).toBeGreaterThan(300);
  },
  60_000,
);

const namesOf = (objects: readonly JsonObject[]) => objects.map((one) => `${one["kind"]} ${nameOf(one)}`);
const during = (from: string, until: string): JsonObject =>
  override({ group: NAMES.label, mode: "Inform", from, until, reason: "x" });

test("three policies for each group that refuses, with their bindings", () => {
  const { view } = guardAssembly([policyOf(NAMES, "Namespace")]);
  expect(namesOf(compileAll(view, INSTALLATION, NOW))).toEqual([
    "ValidatingAdmissionPolicy usher-node-guard-guarded-assign",
    "ValidatingAdmissionPolicyBinding usher-node-guard-guarded-assign",
    "ValidatingAdmissionPolicy usher-node-guard-guarded-bind",
    "ValidatingAdmissionPolicyBinding usher-node-guard-guarded-bind",
    "ValidatingAdmissionPolicy usher-node-guard-guarded-labels",
    "ValidatingAdmissionPolicyBinding usher-node-guard-guarded-labels",
  ]);
});

test.each([
  ["2026-11-16T11:00:00Z", "2026-11-16T12:00:01Z", "Audit"],
  ["2026-11-16T12:00:05Z", "2026-11-16T13:00:00Z", "Audit"],
  ["2026-11-16T12:01:00Z", "2026-11-16T13:00:00Z", "Deny"],
  ["2026-11-16T11:00:00Z", "2026-11-16T12:00:00Z", "Deny"],
])("under an override from %s to %s bindings %s", (from, until, action) => {
  const assembly = guardAssembly([policyOf(NAMES, "Namespace")]);
  const object = during(from, until);
  assembly.apply([{ resource: "nodeguardoverrides.usher.dev", namespace: "", name: "o", object }]);
  const actions = compileAll(assembly.view, INSTALLATION, NOW).flatMap((one) =>
    listAt(one, "spec", "validationActions"),
  );
  expect(actions).toEqual([action, action, action]);
});

test.each<[string, JsonObject]>([
  ["Inform", { mode: "Inform" }],
  ["Disable", { mode: "Disable" }],
])("none for a group with %s", (_case, more) => {
  const policy = policyOf(NAMES, "Namespace");
  const groups = listAt(policy, "spec", "groups").map((group) => ({ ...(group as JsonObject), ...more }));
  const { view } = guardAssembly([{ ...policy, spec: { groups } }]);
  expect(compileAll(view, INSTALLATION, NOW)).toEqual([]);
});

test("with permissions in RBAC only the labels, which the API server's own authorizer checks in addition to the lists", () => {
  const policy = policyOf(NAMES, "Namespace");
  const groups = listAt(policy, "spec", "groups").map((group) => ({ ...(group as JsonObject), rbac: true }));
  const { view } = guardAssembly([{ ...policy, spec: { groups } }]);
  const compiled = compileAll(view, INSTALLATION, NOW);
  expect(namesOf(compiled)).toEqual([
    "ValidatingAdmissionPolicy usher-node-guard-guarded-labels",
    "ValidatingAdmissionPolicyBinding usher-node-guard-guarded-labels",
  ]);
  expect(at(compiled[0] ?? {}, "spec", "validations", 0, "expression")).toContain(
    '|| authorizer.group("scheduling.usher.dev").resource("nodegroups").name("guarded").check("assign").allowed()',
  );
});

test("none under the cap of mastersSchedulable", () => {
  const policy = policyOf(NAMES, "Namespace");
  const groups = listAt(policy, "spec", "groups").map((group) => ({
    ...(group as JsonObject),
    name: "ControlPlane",
  }));
  const assembly = guardAssembly([{ ...policy, spec: { groups } }]);
  const scheduler = (mastersSchedulable: boolean) => {
    const object = { kind: "Scheduler", metadata: { name: "cluster" }, spec: { mastersSchedulable } };
    assembly.apply([{ resource: "schedulers.config.openshift.io", namespace: "", name: "cluster", object }]);
    return compileAll(assembly.view, INSTALLATION, NOW).length;
  };
  expect([scheduler(false), scheduler(true)]).toEqual([6, 0]);
});

test("a refusal has the code of the webhook's, which `usher help` explains", () => {
  const { view } = guardAssembly([policyOf(NAMES, "Namespace"), ...NODES]);
  const messages = compileAll(view, INSTALLATION, NOW).flatMap((one) => listAt(one, "spec", "validations"));
  expect(messages).toMatchObject([
    { messageExpression: expect.stringContaining("(USHER-G01)") },
    { messageExpression: expect.stringContaining("(USHER-G02)") },
    { messageExpression: expect.stringContaining("(USHER-G09)") },
  ]);
});

test("groups whose names differ only in case do not share policies", () => {
  const policy = policyOf(NAMES, "Namespace");
  const groups = ["gpu", "GPU", "Edge nodes"].map((name) => ({
    ...(listAt(policy, "spec", "groups")[0] as JsonObject),
    name,
  }));
  const { view } = guardAssembly([{ ...policy, spec: { groups } }]);
  const names = compileAll(view, INSTALLATION, NOW).map(nameOf);
  expect(new Set(names).size).toBe(9);
  for (const name of names) expect(name).toMatch(/^[a-z0-9-]{1,253}$/);
});

test("neither usher's namespace nor the control plane's is matched, and no node means no refusal", () => {
  const { view } = guardAssembly([policyOf(NAMES, "Namespace")]);
  // Nodes have no namespace, and only a node of the group can leave it.
  const bindings = compileAll(view, INSTALLATION, NOW).filter(
    (one) => one["kind"] === "ValidatingAdmissionPolicyBinding" && !nameOf(one).endsWith("-labels"),
  );
  for (const binding of bindings) {
    expect(at(binding, "spec", "paramRef", "parameterNotFoundAction")).toBe("Allow");
    expect(listAt(binding, "spec", "matchResources", "namespaceSelector", "matchExpressions")).toMatchObject([
      { operator: "NotIn", values: expect.arrayContaining(["kube-system", "usher-system"]) },
    ]);
  }
});

const IN_FORCE = (more: JsonObject = {}, settings: JsonObject = {}) => {
  const policy = policyOf(NAMES, "Namespace");
  const groups = listAt(policy, "spec", "groups").map((group) => ({ ...(group as JsonObject), ...more }));
  const installation = { ...INSTALLATION, settings: { "node-guard": { builtIn: "None", ...settings } } };
  const { view } = guardAssembly([{ ...policy, spec: { groups } }, ...NODES]);
  const compiled = compileAll(view, installation, NOW);
  const assembly = guardAssembly([{ ...policy, spec: { groups } }, ...NODES], installation);
  assembly.apply(
    compiled.map((object) => ({
      resource: `${object["kind"] === "ValidatingAdmissionPolicy" ? "validatingadmissionpolicies" : "validatingadmissionpolicybindings"}.admissionregistration.k8s.io`,
      namespace: "",
      name: nameOf(object),
      object,
    })),
  );
  return assembly.hooks.filter(({ failure }) => failure === "closed").map(({ name }) => name);
};

test.each<[string, JsonObject, JsonObject, string[]]>([
  ["the fallback judges all", {}, {}, []],
  ["failurePolicy is Fail", { failurePolicy: "Fail" }, {}, ["node-guard-assign", "node-guard-bind"]],
  ["accounts are exact", { serviceAccountScope: "Exact" }, {}, ["node-guard-assign", "node-guard-bind"]],
  ["new nodes count", { newNodeGraceSeconds: 60 }, {}, ["node-guard-assign", "node-guard-bind"]],
  ["rights are in RBAC", { rbac: true }, {}, ["node-guard-assign", "node-guard-bind"]],
  [
    "rights are in RBAC, and Ignore is chosen",
    { rbac: true, failurePolicy: "Ignore" },
    {},
    ["node-guard-assign", "node-guard-bind"],
  ],
  ["the fallback is off", {}, { fallback: false }, ["node-guard-assign", "node-guard-bind"]],
  [
    "accounts are exact, and Ignore is chosen",
    { serviceAccountScope: "Exact", failurePolicy: "Ignore" },
    {},
    [],
  ],
])(
  "while the policies are stored and %s, fail-closed hooks are as desired",
  (_case, group, settings, closed) => {
    expect(IN_FORCE(group, settings)).toEqual(closed);
  },
);
