import { expect, test } from "vitest";
import { controlledBy, pod, workload } from "../../../../test/builders/pod.ts";
import { asked, podSecurityWith } from "../../../../test/builders/pod-security.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { JsonObject } from "../../../core/json.ts";

const SPEC = { containers: [{ name: "c", image: "i" }] };
const WINDOWS = { ...SPEC, os: { name: "windows" } };
const LINUX_ONLY = { nodeSelector: { "kubernetes.io/os": "linux" } };

test.each<[string, JsonObject, string[]]>([
  ["an explicit OS", pod({ spec: WINDOWS }), ["usher_pod_os_pods windows explicit"]],
  ["a selector", pod({ spec: { ...SPEC, ...LINUX_ONLY } }), ["usher_pod_os_pods linux nodeSelector"]],
  ["nothing", pod({ spec: SPEC }), []],
  ["a template", workload("apps/v1", "Deployment", { spec: WINDOWS }), []],
])("%s: counted by OS and source", async (_what, object, counts) => {
  expect((await asked(podSecurityWith({}), requestFor(object))).pods).toEqual(counts);
});

test("a refused contradiction raises PodOSNotSupported on the owner", async () => {
  const assembly = podSecurityWith({ settings: { os: { contradictions: "Deny" } } });
  const owner = controlledBy("apps/v1", "ReplicaSet", "web");
  const object = pod({ spec: { ...WINDOWS, ...LINUX_ONLY }, owner });
  expect(await asked(assembly, requestFor(object))).toMatchObject({
    allowed: false,
    pods: [],
    events: [
      {
        type: "Warning",
        reason: "PodOSNotSupported",
        message: expect.stringContaining("linux contradicts spec.os.name: windows"),
        regarding: { kind: "ReplicaSet", name: "web", namespace: "shop" },
      },
    ],
  });
});

test("by default a pod without spec.os is neither refused nor edited, whatever its other fields", async () => {
  const object = pod({
    spec: { ...SPEC, ...LINUX_ONLY, hostPID: true },
    labels: { "kubernetes.io/os": "windows" },
  });
  const assembly = podSecurityWith({ labels: { enforce: "restricted" } });
  for (const phase of ["mutate", "validate"] as const)
    expect(await asked(assembly, requestFor(object), { phase })).toMatchObject({ allowed: true, patch: [] });
});
