import { describe, expect, test } from "vitest";
import { atOnce } from "../../../../test/builders/evaluation.ts";
import { controlledBy, pod, workload } from "../../../../test/builders/pod.ts";
import { asksPodOS, podOSWith } from "../../../../test/builders/pod-os.ts";
import { asked, podSecurityWith } from "../../../../test/builders/pod-security.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import type { JsonObject } from "../../../core/json.ts";

const CONTAINERS = { containers: [{ name: "main", image: "registry.example/app:1" }] };
const WINDOWS = { ...CONTAINERS, os: { name: "windows" } };
const LINUX_ONLY = { nodeSelector: { "kubernetes.io/os": "linux" } };
const BAD = { ...WINDOWS, ...LINUX_ONLY };

function judged(object: JsonObject, os: JsonObject = {}, change: Partial<AdmissionRequest> = {}) {
  return atOnce(asksPodOS(podOSWith([], os), requestFor(object, change), "validate"));
}

describe("spec.os without a selector", () => {
  test.each(["Pod", "Deployment", "DaemonSet", "CronJob"])("warns about %s", (kind) => {
    const group = kind === "CronJob" ? "batch/v1" : "apps/v1";
    const object = kind === "Pod" ? pod({ spec: WINDOWS }) : workload(group, kind, { spec: WINDOWS });
    const { findings, denials } = judged(object, { contradictions: "Deny" });
    expect(denials).toEqual([]);
    expect(findings).toMatchObject([
      {
        code: "USHER-O03",
        message: expect.stringContaining("add nodeSelector kubernetes.io/os: windows"),
        warn: 50,
      },
    ]);
  });

  test.each<[string, JsonObject]>([
    ["a selector", { ...WINDOWS, nodeSelector: { "kubernetes.io/os": "windows" } }],
    ["no spec.os", CONTAINERS],
  ])("ignores %s", (_name, spec) => expect(judged(pod({ spec })).findings).toEqual([]));

  test("a pod that has its node already: the scheduler does not see it", async () => {
    const object = pod({ spec: { ...WINDOWS, nodeName: "n" } });
    const { findings } = await asksPodOS(podOSWith([]), requestFor(object), "validate");
    expect(findings.filter(({ code }) => code === "USHER-O03")).toEqual([]);
  });
});

describe("os.contradictions", () => {
  test("Warn warns, Disabled ignores, Deny refuses", () => {
    expect(judged(pod({ spec: BAD }))).toMatchObject({
      denials: [],
      findings: [{ code: "USHER-O01", warn: 60 }],
    });
    // Off is the earlier value.
    for (const contradictions of ["Disabled", "Off"])
      expect(judged(pod({ spec: BAD }), { contradictions }).findings).toEqual([]);
    const { denials } = judged(pod({ spec: BAD }), { contradictions: "Deny" });
    expect(denials).toMatchObject([
      {
        code: 403,
        message: expect.stringContaining(
          "spec.nodeSelector[kubernetes.io/os]: linux contradicts spec.os.name: windows",
        ),
      },
    ]);
  });

  test("an OS that is not explicit never refuses", () => {
    const spec = {
      ...CONTAINERS,
      nodeSelector: { "kubernetes.io/os": "linux", "beta.kubernetes.io/os": "windows" },
    };
    expect(judged(pod({ spec }), { contradictions: "Deny" })).toMatchObject({
      denials: [],
      findings: [{ warn: 60 }],
    });
  });

  test("Deny evaluates only changed templates, no object being deleted and no template of a controller", () => {
    const stored = workload("apps/v1", "Deployment", { spec: BAD });
    const deny = { contradictions: "Deny" };
    expect(judged(stored, deny).denials).toHaveLength(1);
    const annotated = {
      ...stored,
      metadata: { ...(stored["metadata"] as JsonObject), annotations: { a: "b" } },
    };
    expect(judged(annotated, deny, { operation: "UPDATE", oldObject: stored }).findings).toEqual([]);
    const going = workload("apps/v1", "Deployment", {
      spec: BAD,
      metadata: { deletionTimestamp: "2026-01-01T00:00:00Z" },
    });
    expect(judged(going, deny).findings).toEqual([]);
    const owned = workload("apps/v1", "ReplicaSet", {
      spec: BAD,
      owner: controlledBy("apps/v1", "Deployment", "web"),
    });
    expect(judged(owned, deny)).toMatchObject({ denials: [], findings: [{ warn: 60 }] });
  });
});

test.each<[string, JsonObject, string[]]>([
  ["a pod with spec.os", pod({ spec: WINDOWS }), ["usher_pod_os_pods windows explicit"]],
  [
    "a pod with a selector",
    pod({ spec: { ...CONTAINERS, ...LINUX_ONLY } }),
    ["usher_pod_os_pods linux nodeSelector"],
  ],
  ["no pod that names no OS", pod({ spec: CONTAINERS }), []],
  ["no template", workload("apps/v1", "Deployment", { spec: WINDOWS }), []],
])("counts %s, by OS and source", async (_what, object, counts) => {
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
    spec: { ...CONTAINERS, ...LINUX_ONLY, hostPID: true },
    labels: { "kubernetes.io/os": "windows" },
  });
  const assembly = podSecurityWith({ labels: { enforce: "restricted" } });
  for (const phase of ["mutate", "validate"] as const)
    expect(await asked(assembly, requestFor(object), { phase })).toMatchObject({ allowed: true, patch: [] });
});
