import { describe, expect, test } from "vitest";
import { controlledBy, pod, workload } from "../../../../test/builders/pod.ts";
import { asked, podSecurityWith } from "../../../../test/builders/pod-security.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { JsonObject } from "../../../core/json.ts";

const SPEC = { containers: [{ name: "c", image: "i" }] };
const WINDOWS = { ...SPEC, os: { name: "windows" }, securityContext: { runAsUser: 1 } };
const deployment = (spec: JsonObject, more: object = {}) =>
  workload("apps/v1", "Deployment", { spec, ...more });
const off = podSecurityWith({ gate: false });

describe("off", () => {
  const owner = controlledBy("apps/v1", "Deployment", "d");
  const remove = (path: string) => [{ op: "remove", path }];
  test.each<[string, JsonObject, JsonObject | undefined, JsonObject[]]>([
    ["a new pod", pod({ spec: WINDOWS }), undefined, remove("/spec/os")],
    ["a new pod of a controller", pod({ spec: WINDOWS, owner }), undefined, remove("/spec/os")],
    ["a new template", deployment(WINDOWS), undefined, remove("/spec/template/spec/os")],
    [
      "a new CronJob",
      workload("batch/v1", "CronJob", { spec: WINDOWS }),
      undefined,
      remove("/spec/jobTemplate/spec/template/spec/os"),
    ],
    [
      "a configured kind",
      workload("argoproj.io/v1alpha1", "Rollout", { spec: WINDOWS }),
      undefined,
      remove("/spec/template/spec/os"),
    ],
    ["a template that had none", deployment(WINDOWS), deployment(SPEC), remove("/spec/template/spec/os")],
    ["a template that had one keeps it", deployment(WINDOWS), deployment(WINDOWS), []],
    ["a pod that had one keeps it", pod({ spec: WINDOWS }), pod({ spec: WINDOWS }), []],
    [
      "a ReplicaSet of a Deployment keeps its Deployment's",
      workload("apps/v1", "ReplicaSet", { spec: WINDOWS, owner }),
      undefined,
      [],
    ],
    ["nothing to drop", pod({ spec: SPEC }), undefined, []],
  ])("%s", async (_what, object, oldObject, patch) => {
    const request = requestFor(
      structuredClone(object),
      oldObject === undefined ? {} : { operation: "UPDATE", oldObject },
    );
    const response = await asked(off, request, { phase: "mutate" });
    expect(response).toMatchObject({ allowed: true, warnings: [], audit: {} });
    expect(response.patch).toEqual(patch);
  });

  test("no rule about the OS applies", async () => {
    const hooks = off.hooks.filter(({ rules }) => rules.length > 0).map(({ name }) => name);
    expect(hooks.sort()).toEqual(["pod-os-gate-pods", "pod-os-gate-templates", "pod-security-templates"]);
    const bad = pod({ spec: { ...WINDOWS, nodeSelector: { "kubernetes.io/os": "linux" } } });
    expect(await asked(off, requestFor(bad))).toMatchObject({ allowed: true, warnings: [], findings: [] });
  });
});

test("a later webhook's addition is dropped as well", () => {
  const dropping = off.hooks.filter(({ phase }) => phase === "mutate");
  expect(dropping.map(({ reinvocation }) => reinvocation)).toEqual(["IfNeeded", "IfNeeded"]);
});

test("with the gate on, nothing is dropped", async () => {
  const on = podSecurityWith({});
  const response = await asked(on, requestFor(pod({ spec: WINDOWS })), { phase: "mutate" });
  expect(response.patch).toEqual([]);
});
