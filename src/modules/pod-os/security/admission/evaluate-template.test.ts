import { describe, expect, test } from "vitest";
import { outside } from "../../../../../test/builders/outside.ts";
import { controlledBy, workload } from "../../../../../test/builders/pod.ts";
import { asked, podSecurityWith } from "../../../../../test/builders/pod-security.ts";
import { requestFor } from "../../../../../test/builders/request.ts";
import type { AdmissionRequest } from "../../../../core/decision/request.ts";
import type { JsonObject } from "../../../../core/json.ts";
import { BUILT_IN_WORKLOADS } from "../../../../core/kubernetes/workloads.ts";

const GOOD = { containers: [{ name: "c", image: "i" }] };
const BAD = { ...GOOD, hostPID: true };
const DETAIL = 'PodSecurity "baseline:latest": host namespaces (hostPID=true)';
const LABELS = { enforce: "baseline", audit: "baseline", warn: "baseline" };
const deployment = (spec: JsonObject = BAD, more: object = {}) =>
  workload("apps/v1", "Deployment", { name: "d", spec, ...more });
const rollout = (spec: JsonObject = BAD) => workload("argoproj.io/v1alpha1", "Rollout", { name: "r", spec });

function judged(
  object: JsonObject,
  podSecurity: JsonObject,
  change: Partial<AdmissionRequest> = {},
  labels: Readonly<Record<string, string>> = LABELS,
) {
  const assembly = podSecurityWith({ settings: { podSecurity }, labels });
  return asked(assembly, requestFor(object, change));
}

describe("Replace", () => {
  const settings = { mode: "Replace" };
  const kinds = BUILT_IN_WORKLOADS.filter(({ template }) => template.length > 0);
  test.each(kinds)("$kind is audited and warned about, never refused", async ({ group, version, kind }) => {
    const object = workload(group === "" ? version : `${group}/${version}`, kind, { spec: BAD });
    expect(await judged(object, settings)).toMatchObject({
      allowed: true,
      warnings: [`would violate ${DETAIL}`],
      audit: { "audit-violations": `would violate ${DETAIL}` },
      counts: [
        "pod_security_evaluations_total deny baseline latest audit create controller ",
        "pod_security_evaluations_total deny baseline latest warn create controller ",
      ],
    });
  });

  test("a configured kind as well", async () => {
    expect((await judged(rollout(), settings)).warnings).toEqual([`would violate ${DETAIL}`]);
  });

  test("also for an update without changes, like upstream", async () => {
    const update = { operation: "UPDATE", oldObject: deployment() } as const;
    expect((await judged(deployment(), settings, update)).warnings).toHaveLength(1);
  });

  test("subresources are ignored", async () => {
    expect((await judged(deployment(), settings, { subResource: "scale" })).warnings).toEqual([]);
  });

  test("exempt and erroneous requests are annotated and pass", async () => {
    const configuration = {
      apiVersion: "pod-security.admission.config.k8s.io/v1",
      kind: "PodSecurityConfiguration",
      exemptions: { usernames: ["jane"] },
    };
    expect(await judged(deployment(), { ...settings, configuration })).toMatchObject({
      allowed: true,
      audit: { exempt: "user" },
      counts: ["pod_security_exemptions_total create controller "],
    });
    const assembly = podSecurityWith({ settings: { podSecurity: settings } });
    const request = requestFor(deployment(BAD, { namespace: "away" }));
    const world = outside({ fact: () => ({ failed: "no route" }) });
    expect(await asked(assembly, request, { world })).toMatchObject({
      allowed: true,
      audit: { error: 'failed to lookup namespace "away"' },
      counts: ["pod_security_errors_total true create controller "],
    });
  });
});

describe("Complement", () => {
  test("built-in kinds are the API server's, configured ones are warned about", async () => {
    expect(await judged(deployment(), {})).toMatchObject({ allowed: true, warnings: [], audit: {} });
    expect(await judged(rollout(), {})).toMatchObject({
      allowed: true,
      warnings: [`would violate ${DETAIL}`],
    });
  });

  test("no hook for built-in kinds", () => {
    const hook = podSecurityWith({}).hooks.find(({ name }) => name === "pod-security-templates");
    expect(hook).toMatchObject({ failure: "open", rules: [{ groups: ["argoproj.io"] }] });
  });
});

describe.each(["Complement", "Replace"])("templates: Deny in %s", (mode) => {
  const settings = { mode, templates: "Deny" };
  test("refuses, with an event, and repeats nothing", async () => {
    const response = await judged(deployment(), settings);
    const message = `deployments.apps "d" is forbidden: violates ${DETAIL}`;
    expect(response).toMatchObject({
      allowed: false,
      warnings: [],
      status: { code: 403, reason: "Forbidden", message },
      events: [{ reason: "PodSecurityViolation", message, regarding: { kind: "Namespace", name: "shop" } }],
    });
    expect(response.status?.causes).toMatchObject([{ field: "spec.template.spec.hostPID" }]);
  });

  const deleted = { metadata: { deletionTimestamp: "2026-11-16T00:00:00Z" } };
  const owner = controlledBy("apps/v1", "Deployment", "d");
  test.each<[string, JsonObject, JsonObject | undefined, boolean]>([
    ["a good one", deployment(GOOD), undefined, true],
    ["a configured kind", rollout(), undefined, false],
    ["a changed template", deployment(), deployment(GOOD), false],
    ["an annotation", deployment(BAD, { annotations: { a: "b" } }), deployment(), true],
    [
      "a removed finalizer of an object being deleted",
      deployment({ ...BAD, hostIPC: true }, deleted),
      deployment(),
      true,
    ],
    ["an object with a controller", workload("apps/v1", "ReplicaSet", { spec: BAD, owner }), undefined, true],
  ])("%s", async (_what, object, oldObject, allowed) => {
    const change = oldObject === undefined ? {} : { operation: "UPDATE" as const, oldObject };
    expect((await judged(object, settings, change)).allowed).toBe(allowed);
  });

  test("follows enforce, not the other modes", async () => {
    const labels = { audit: "baseline", warn: "baseline" };
    expect((await judged(deployment(), settings, {}, labels)).allowed).toBe(true);
  });
});

test("templates: Deny evaluates a template after hardening", async () => {
  const settings = {
    podSecurity: { mode: "Replace", templates: "Deny" },
    os: { harden: ["shop"] },
  };
  const assembly = podSecurityWith({ settings, labels: { enforce: "restricted" } });
  assembly.serve("nodes");
  assembly.apply([
    {
      resource: "nodes",
      namespace: "",
      name: "n",
      object: { metadata: { name: "n" }, status: { nodeInfo: { operatingSystem: "linux" } } },
    },
  ]);
  const object = structuredClone(deployment(GOOD)) as JsonObject;
  const mutated = await asked(assembly, requestFor(object), { phase: "mutate" });
  expect(mutated.patch).not.toEqual([]);
  // The draft is edited in place: it is now the object of the API server's next call.
  expect((await asked(assembly, requestFor(object))).status).toBeUndefined();
  expect((await asked(assembly, requestFor(deployment(GOOD)))).allowed).toBe(false);
});
