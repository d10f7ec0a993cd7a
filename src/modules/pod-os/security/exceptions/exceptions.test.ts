import { describe, expect, test } from "vitest";
import { pod, workload } from "../../../../../test/builders/pod.ts";
import { asked, exception, NOW, podSecurityWith } from "../../../../../test/builders/pod-security.ts";
import { requestFor } from "../../../../../test/builders/request.ts";
import type { Installation } from "../../../../core/installation/installation.ts";
import { configuredValues, holds } from "../../../../core/installation/setting-condition.ts";
import type { JsonObject } from "../../../../core/json.ts";
import { checkObject } from "../../../../core/policy/check.ts";
import { Store } from "../../../../core/view/store.ts";
import { podSecurityException } from "../../kinds.ts";

const bad = (name: string, image = "registry.example/app:1") => ({
  name,
  image,
  securityContext: { privileged: true },
});
const SPEC = {
  containers: [bad("a"), bad("b", "registry.example/mesh/proxy:2")],
  serviceAccountName: "mesh",
};
const LABELS = { enforce: "baseline", audit: "baseline" };

function judged(exceptions: readonly JsonObject[], spec: JsonObject = SPEC, labels = { app: "web" }) {
  const assembly = podSecurityWith({
    settings: { podSecurity: { mode: "Replace" } },
    labels: LABELS,
    exceptions,
  });
  return asked(assembly, requestFor(pod({ name: "p", spec, labels })));
}

const privileged = (more: JsonObject = {}) => [exception("mesh", { checks: ["privileged"], ...more })];

test("an exception waives a check; it is audited and counted, and audit mode still reports", async () => {
  const response = await judged(privileged());
  expect(response).toMatchObject({
    allowed: true,
    audit: { exception: "mesh: privileged", "enforce-policy": "baseline:latest" },
    findings: expect.arrayContaining([
      expect.objectContaining({
        outcome: "authorized",
        policy: expect.objectContaining({ kind: "PodSecurityException", name: "mesh" }),
      }),
    ]),
  });
  expect(response.audit["audit-violations"]).toContain("privileged");
});

describe("it is for the pods that it names", () => {
  test.each<[string, JsonObject, boolean]>([
    ["another check", { checks: ["hostPorts"] }, false],
    ["another namespace", { namespaces: ["other"] }, false],
    ["one of several namespaces", { namespaces: ["other", "shop"] }, true],
    ["its labels", { podSelector: { matchLabels: { app: "web" } } }, true],
    ["other labels", { podSelector: { matchLabels: { app: "db" } } }, false],
    ["its service account", { serviceAccounts: ["mesh"] }, true],
    ["another service account", { serviceAccounts: ["default"] }, false],
    ["one container of two", { containers: ["a"] }, false],
    ["both containers", { containers: ["a", "b"] }, true],
    ["one image of two", { images: ["registry.example/mesh/*"] }, false],
    ["images by their beginning", { images: ["registry.example/*"] }, true],
    ["a whole image is not a prefix", { images: ["registry.example/"] }, false],
    ["images that are not a list", { images: "registry.example/*" }, false],
    ["service accounts that are not a list", { serviceAccounts: "default" }, false],
  ])("%s", async (_what, spec, allowed) => {
    expect((await judged(privileged(spec))).allowed).toBe(allowed);
  });
});

test("for one container, the others stay forbidden, with the fields of the whole pod", async () => {
  const { status, audit } = await judged(privileged({ containers: ["a"] }));
  expect(status?.message).toContain('privileged (container "b" must not set');
  expect(status?.causes.map(({ field }) => field)).toEqual(["spec.containers[1].securityContext.privileged"]);
  expect(audit["exception"]).toBe("mesh: privileged");
});

test("exceptions for containers waive nothing of the pod itself", async () => {
  const spec = { ...SPEC, hostPID: true };
  const { status, audit } = await judged(
    [exception("e", { checks: ["privileged", "hostNamespaces"], containers: ["a", "b"] })],
    spec,
  );
  expect(audit["exception"]).toBe("e: privileged");
  expect(status?.message).toBe(
    'pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostPID=true)',
  );
});

test("two exceptions add up", async () => {
  const both = [
    exception("one", { checks: ["privileged"], containers: ["a"] }),
    exception("two", { checks: ["privileged"], containers: ["b"] }),
  ];
  expect(await judged(both)).toMatchObject({
    allowed: true,
    audit: { exception: "one: privileged; two: privileged" },
  });
});

test.each<[string, string, boolean]>([
  ["before it expires", new Date(NOW + 1_000).toISOString(), true],
  ["at its end, without a write", new Date(NOW).toISOString(), false],
  ["with another offset", "2026-11-16T14:00:01+02:00", true],
  ["one that would last for years", "2036-01-01T00:00:00Z", false],
])("%s", async (_what, expires, allowed) => {
  expect((await judged(privileged({ expires }))).allowed).toBe(allowed);
});

test("exceptions for some containers waive nothing in a pod with more containers than are compared", async () => {
  const exceptions = [exception("e", { checks: ["privileged"], images: ["mesh*"] })];
  const assembly = podSecurityWith({
    settings: { podSecurity: { mode: "Replace" } },
    labels: { enforce: "baseline" },
    exceptions,
  });
  const allowed = async (length: number) => {
    const containers = Array.from({ length }, (_, i) => ({
      name: `c${i}`,
      image: "mesh:1",
      securityContext: { privileged: true },
    }));
    return (await asked(assembly, requestFor(pod({ spec: { containers } })))).allowed;
  };
  expect([await allowed(15_000), await allowed(15_001)]).toEqual([true, false]);
});

describe("an exception that is written", () => {
  const problems = (spec: JsonObject, now?: number) =>
    checkObject(podSecurityException, exception("e", spec), new Store(), undefined, now).map(
      ({ path, message, hint }) => `${path.join(".")}: ${message}${hint === undefined ? "" : `; ${hint}`}`,
    );
  test.each<[string, JsonObject, RegExp | undefined]>([
    ["is complete", { checks: ["privileged"], owner: "mesh team", reason: "init containers" }, undefined],
    ["without checks", {}, /spec\.checks/],
    ["without namespaces", { checks: ["privileged"], namespaces: null }, /spec\.namespaces/],
    ["without an end", { checks: ["privileged"], expires: null }, /spec\.expires/],
    [
      "with an unknown check",
      { checks: ["hostPort"] },
      /"hostPort" is not a check.*did you mean "hostPorts"/,
    ],
    ["with an invalid date", { checks: ["privileged"], expires: "soon" }, /spec\.expires/],
    ["beyond a year", { checks: ["privileged"], expires: "2027-12-01T00:00:00Z" }, /at most a year from now/],
    ["in the past", { checks: ["privileged"], expires: "2026-01-01T00:00:00Z" }, /in the future/],
    ["with an unknown field", { checks: ["privileged"], users: ["jane"] }, /users/],
  ])("%s", (_what, spec, message) => {
    const found = problems(spec, NOW);
    if (message === undefined) expect(found).toEqual([]);
    else expect(found.join("\n")).toMatch(message);
  });
  test("without a clock, dates pass", () => {
    expect(problems({ checks: ["privileged"], expires: "2036-01-01T00:00:00Z" })).toEqual([]);
  });
});

test("in Complement, where the API server's plugin refuses the pods, no exception admits a template", async () => {
  const deployment = workload("apps/v1", "Deployment", { spec: SPEC });
  for (const [mode, allowed] of [
    ["Complement", false],
    ["Replace", true],
  ] as const) {
    const settings = { podSecurity: { mode, templates: "Deny" } };
    const assembly = podSecurityWith({ settings, labels: LABELS, exceptions: privileged() });
    expect((await asked(assembly, requestFor(deployment))).allowed).toBe(allowed);
  }
});

test("the kind is registered only in Replace", () => {
  const { installation, gates } = podSecurityWith({});
  const isRegistered = (one: Installation) =>
    holds(podSecurityException.registered, configuredValues(one, gates));
  expect(isRegistered(installation)).toBe(false);
  const replacing = podSecurityWith({ settings: { podSecurity: { mode: "Replace" } } }).installation;
  expect(isRegistered(replacing)).toBe(true);
});
