import { describe, expect, test } from "vitest";
import { pod, workload } from "../../../../test/builders/pod.ts";
import { asked, podSecurityWith } from "../../../../test/builders/pod-security.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import type { JsonObject } from "../../../core/json.ts";

const SPEC = { containers: [{ name: "c", image: "i" }], nodeSelector: { "kubernetes.io/os": "windows" } };
const WINDOWS = { ...SPEC, os: { name: "windows" } };
const BAD = { ...WINDOWS, hostPID: true };
const FORBIDDEN = "Forbidden: cannot be set for a windows pod";
const OFFLINE = { unvalidated: true } as const;

function judged(object: JsonObject, change: Partial<AdmissionRequest> = {}, server?: string) {
  const assembly = podSecurityWith(server === undefined ? {} : { server });
  return asked(assembly, requestFor(object, change));
}

describe("offline", () => {
  test.each<[string, JsonObject, Partial<AdmissionRequest>, string | undefined]>([
    ["a valid pod", pod({ spec: WINDOWS }), {}, undefined],
    ["a pod", pod({ name: "p", spec: BAD }), {}, `Pod "p" is invalid: spec.hostPID: ${FORBIDDEN}`],
    [
      "several errors",
      pod({ name: "p", spec: { ...BAD, hostIPC: true } }),
      {},
      `Pod "p" is invalid: [spec.hostPID: ${FORBIDDEN}, spec.hostIPC: ${FORBIDDEN}]`,
    ],
    [
      "a Deployment",
      workload("apps/v1", "Deployment", { name: "d", spec: BAD }),
      {},
      `Deployment.apps "d" is invalid: spec.template.spec.hostPID: ${FORBIDDEN}`,
    ],
    [
      "a configured kind",
      workload("argoproj.io/v1alpha1", "Rollout", { name: "r", spec: BAD }),
      {},
      `Rollout.argoproj.io "r" is invalid: spec.template.spec.hostPID: ${FORBIDDEN}`,
    ],
    [
      "a changed OS of a pod",
      pod({ name: "p", spec: WINDOWS }),
      { operation: "UPDATE", oldObject: pod({ name: "p", spec: SPEC }) },
      'Pod "p" is invalid: spec: Forbidden: pod updates may not change fields other than',
    ],
    [
      "an ephemeral container",
      pod({
        name: "p",
        spec: {
          ...WINDOWS,
          ephemeralContainers: [{ name: "e", securityContext: { privileged: false } }],
        },
      }),
      {
        operation: "UPDATE",
        subResource: "ephemeralcontainers",
        oldObject: pod({ name: "p", spec: WINDOWS }),
      },
      `Pod "p" is invalid: spec.ephemeralContainers[0].securityContext.privileged: ${FORBIDDEN}`,
    ],
    [
      "a resize of a Windows pod",
      pod({ name: "p", spec: WINDOWS }),
      { operation: "UPDATE", subResource: "resize", oldObject: pod({ name: "p", spec: WINDOWS }) },
      'Pod "p" is invalid: []: Forbidden: windows pods cannot be resized',
    ],
    [
      "a resize of another pod",
      pod({ name: "p", spec: SPEC }),
      { operation: "UPDATE", subResource: "resize", oldObject: pod({ name: "p", spec: SPEC }) },
      undefined,
    ],
    [
      "an unchanged template",
      workload("apps/v1", "Deployment", { spec: BAD, annotations: { a: "b" } }),
      { operation: "UPDATE", oldObject: workload("apps/v1", "Deployment", { spec: BAD }) },
      undefined,
    ],
  ])("%s", async (_what, object, change, message) => {
    const { allowed, status } = await judged(object, { ...OFFLINE, ...change });
    expect(allowed).toBe(message === undefined);
    if (message !== undefined) expect(status).toMatchObject({ code: 422, reason: "Invalid" });
    expect(status?.message.startsWith(message ?? "")).toBe(message === undefined ? undefined : true);
  });
});

describe("in a cluster", () => {
  test("a configured kind is warned about", async () => {
    const rollout = workload("argoproj.io/v1alpha1", "Rollout", { name: "r", spec: BAD });
    expect(await judged(rollout, {}, "v1.37.1")).toMatchObject({
      allowed: true,
      warnings: [`spec.template.spec.hostPID: ${FORBIDDEN}; no such pod can be created (USHER-O05)`],
    });
  });

  test("a pod that the API server admitted is valid", async () => {
    expect((await judged(pod({ spec: BAD }), {}, "v1.33.0")).allowed).toBe(true);
  });
});
