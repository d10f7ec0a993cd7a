import { describe, expect, test } from "vitest";
import { atOnce } from "../../../../test/builders/evaluation.ts";
import { controlledBy, type PodParts, pod, workload } from "../../../../test/builders/pod.ts";
import { asksPodOS, osNode, podOSWith } from "../../../../test/builders/pod-os.ts";
import { requestFor } from "../../../../test/builders/request.ts";
import type { AdmissionRequest } from "../../../core/decision/request.ts";
import { at, type Json, type JsonObject } from "../../../core/json.ts";
import { provenanceOf } from "../../../core/provenance/annotation.ts";
import { validatePodOS } from "../os/validate.ts";
import { evaluatePodSecurity } from "../security/evaluate.ts";

const CONTAINERS = { containers: [{ name: "main", image: "registry.example/app:1" }] };
const WINDOWS = { os: { name: "windows" } };
const SELECTOR = { nodeSelector: { "kubernetes.io/os": "windows" } };
const LINUX_NODES = [osNode("a", { label: "linux", reports: "linux" })];
const MIXED = [...LINUX_NODES, osNode("w", { label: "windows", reports: "windows" })];

function mutated(
  object: JsonObject,
  settings: JsonObject,
  nodes = MIXED,
  change: Partial<AdmissionRequest> = {},
) {
  const assembly = podOSWith(nodes, settings);
  return atOnce(asksPodOS(assembly, requestFor(structuredClone(object) as JsonObject, change), "mutate"));
}

const podWith = (spec: JsonObject, parts: PodParts = {}) =>
  pod({ ...parts, spec: { ...CONTAINERS, ...spec } });

describe("os.write", () => {
  const written = (
    object: JsonObject,
    change: Partial<AdmissionRequest> = {},
    nodes = MIXED,
  ): Json | undefined => mutated(object, { write: true }, nodes, change).draft.object["spec"];

  test.each<[string, JsonObject, JsonObject, PodParts]>([
    ["explicit: the selector", WINDOWS, { ...WINDOWS, ...SELECTOR }, {}],
    ["by selector: spec.os", SELECTOR, { ...WINDOWS, ...SELECTOR }, {}],
    ["by label: both", {}, { ...WINDOWS, ...SELECTOR }, { labels: { "kubernetes.io/os": "windows" } }],
  ])("%s", (_name, spec, expected, parts) => {
    expect(written(podWith(spec, parts))).toMatchObject(expected);
  });

  test.each<[string, JsonObject, PodParts, Partial<AdmissionRequest>]>([
    ["unknown", {}, {}, {}],
    ["contradictory", { ...WINDOWS, nodeSelector: { "kubernetes.io/os": "linux" } }, {}, {}],
    ["no OS of pods", { os: { name: "plan9" } }, {}, {}],
    ["pods of a DaemonSet", WINDOWS, { owner: controlledBy("apps/v1", "DaemonSet", "agent") }, {}],
    [
      "pods of a DaemonSet of another group",
      WINDOWS,
      { owner: controlledBy("apps.kruise.io/v1alpha1", "DaemonSet", "agent") },
      {},
    ],
    ["mirror pods", WINDOWS, { annotations: { "kubernetes.io/config.mirror": "x" } }, {}],
    ["an update of a pod", WINDOWS, {}, { operation: "UPDATE", oldObject: podWith({}) }],
    ["another system's namespace", WINDOWS, { namespace: "kube-system" }, {}],
    ["an invalid selector", { ...WINDOWS, nodeSelector: "x" }, {}, {}],
  ])("writes nothing: %s", (_name, spec, parts, change) => {
    expect(mutated(podWith(spec, parts), { write: true }, MIXED, change).draft.edits).toEqual([]);
  });

  test("affinity for the OS needs no selector", () => {
    const terms = [{ matchExpressions: [{ key: "kubernetes.io/os", operator: "In", values: ["windows"] }] }];
    const affinity = {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: terms } },
    };
    const spec = written(podWith({ affinity }));
    expect(spec).toMatchObject(WINDOWS);
    expect(at(spec, "nodeSelector")).toBeUndefined();
  });

  test("a RuntimeClass determines the OS of a template", () => {
    const runtimeClass = {
      apiVersion: "node.k8s.io/v1",
      kind: "RuntimeClass",
      metadata: { name: "windows-2022" },
      scheduling: { nodeSelector: { "kubernetes.io/os": "windows" } },
    };
    const object = workload("apps/v1", "Deployment", {
      spec: { ...CONTAINERS, runtimeClassName: "windows-2022" },
    });
    expect(at(written(object, {}, [...MIXED, runtimeClass]), "template", "spec")).toMatchObject(WINDOWS);
  });

  test("a missing part of the pod itself is not written if the API server would refuse it", () => {
    const { draft, findings } = mutated(podWith({ ...SELECTOR, hostPID: true }), { write: true });
    expect(draft.edits).toEqual([]);
    expect(findings).toMatchObject([{ code: "USHER-O02", outcome: "skipped" }]);
    expect(findings[0]?.message).toContain("spec.hostPID");
  });

  describe("templates", () => {
    const object = (kind: string, more: JsonObject = {}) =>
      workload(kind === "Job" ? "batch/v1" : "apps/v1", kind, {
        spec: { ...CONTAINERS, ...WINDOWS, ...more },
      });
    const stored = object("Deployment");

    test.each(["Deployment", "DaemonSet", "StatefulSet", "Job"])("%s on CREATE", (kind) => {
      expect(at(written(object(kind)), "template", "spec")).toMatchObject({ ...WINDOWS, ...SELECTOR });
    });

    test("an unchanged template is left alone: usher rolls nothing out", () => {
      const labelled = { ...stored, metadata: { ...(stored["metadata"] as JsonObject), labels: { a: "b" } } };
      const change = { operation: "UPDATE", oldObject: stored } as const;
      expect(mutated(labelled, { write: true }, MIXED, change).draft.edits).toEqual([]);
    });

    test("a template that changed anyway is written to", () => {
      const change = { operation: "UPDATE", oldObject: stored } as const;
      const after = object("Deployment", { terminationGracePeriodSeconds: 5 });
      expect(at(written(after, change), "template", "spec")).toMatchObject(SELECTOR);
      const job = { operation: "UPDATE", oldObject: object("Job") } as const;
      const edits = mutated(object("Job", { priority: 1 }), { write: true }, MIXED, job).draft.edits;
      expect(edits, "most of a Job's template is immutable").toEqual([]);
    });

    test("a ReplicaSet of a Deployment keeps the template of its controller", () => {
      const owned = workload("apps/v1", "ReplicaSet", {
        spec: { ...CONTAINERS, ...WINDOWS },
        owner: controlledBy("apps/v1", "Deployment", "web"),
      });
      expect(mutated(owned, { write: true }).draft.edits).toEqual([]);
    });
  });
});

describe("os.harden", () => {
  const hardened = (object: JsonObject, nodes: JsonObject[], settings: JsonObject = {}) =>
    mutated(object, { harden: ["shop"], ...settings }, nodes);

  test("an unknown OS gets Linux fields only if no node is Windows", () => {
    expect(hardened(podWith({}), LINUX_NODES).draft.object["spec"]).toMatchObject({
      securityContext: { runAsNonRoot: true, seccompProfile: { type: "RuntimeDefault" } },
      containers: [{ securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ["ALL"] } } }],
    });
    expect(hardened(podWith({}), MIXED).draft.edits).toEqual([]);
    const byLabel = [...LINUX_NODES, osNode("new", { label: "windows" })];
    expect(hardened(podWith({}), byLabel).draft.edits, "a node that has not reported yet").toEqual([]);
    const byReport = [...LINUX_NODES, osNode("virtual", { reports: "Windows" })];
    expect(hardened(podWith({}), byReport).draft.edits, "a virtual kubelet").toEqual([]);
    expect(hardened(podWith({}), []).draft.edits, "no node is known").toEqual([]);
  });

  test("each OS gets its own fields, and written values count", () => {
    const linux = hardened(podWith({ os: { name: "linux" } }), MIXED).draft.object["spec"];
    expect(at(linux, "securityContext", "seccompProfile")).toEqual({ type: "RuntimeDefault" });
    const windows = hardened(podWith(SELECTOR), MIXED, { write: true }).draft.object["spec"];
    expect(windows).toMatchObject({
      ...WINDOWS,
      securityContext: { runAsNonRoot: true, windowsOptions: { runAsUserName: "ContainerUser" } },
    });
    expect(at(windows, "containers", 0, "securityContext")).toBeUndefined();
  });

  test("only in its namespaces, not with contradictions, not in templates of a controller", () => {
    expect(hardened(podWith({}, { namespace: "other" }), LINUX_NODES).draft.edits).toEqual([]);
    expect(hardened(podWith({ ...SELECTOR, os: { name: "linux" } }), LINUX_NODES).draft.edits).toEqual([]);
    const owner = controlledBy("apps/v1", "Deployment", "web");
    expect(hardened(workload("apps/v1", "ReplicaSet", { owner }), LINUX_NODES).draft.edits).toEqual([]);
    const daemon = podWith({}, { owner: controlledBy("apps/v1", "DaemonSet", "agent") });
    expect(hardened(daemon, LINUX_NODES).draft.edits).not.toEqual([]);
  });

  test("hostile containers are left to the API server", () => {
    const specs = [
      { containers: "x" },
      { containers: [null, "x"] },
      { securityContext: "x" },
      null,
    ] as Json[];
    for (const spec of specs)
      expect(hardened(pod({ spec }), LINUX_NODES).findings).not.toContainEqual(
        expect.objectContaining({ rule: "evaluation" }),
      );
  });

  test("hardens a pod of 500 containers, and reports that it skips a larger one", () => {
    const many = (length: number) => ({ containers: Array.from({ length }, (_, i) => ({ name: `c${i}` })) });
    // Two fields of the pod, two of each container, and the provenance annotation.
    expect(hardened(pod({ spec: many(500) }), LINUX_NODES).draft.edits).toHaveLength(1_003);
    const { draft, findings } = hardened(pod({ spec: many(501) }), LINUX_NODES);
    expect(draft.edits).toEqual([]);
    expect(findings).toMatchObject([{ code: "USHER-O06", outcome: "skipped", warn: 40 }]);
  });
});

test.each(["linux", "windows"])(
  "a hardened %s pod passes restricted, and another call changes nothing",
  (name) => {
    const settings = { write: true, harden: ["shop"] };
    const { draft } = mutated(podWith({ os: { name } }), settings);
    const { metadata, spec } = draft.object as { metadata: JsonObject; spec: JsonObject };
    expect(validatePodOS(spec)).toEqual([]);
    expect(evaluatePodSecurity({ level: "restricted", version: "latest" }, metadata, spec).detail).toBe("");
    expect(mutated(draft.object, settings).draft.edits).toEqual([]);
  },
);

test("the provenance annotation names the setting of each edit, and keeps it at another call", () => {
  const settings = { write: true, harden: ["shop"] };
  const { draft } = mutated(podWith(SELECTOR), settings);
  const expected = [
    {
      module: "pod-os",
      policy: "Setting/os.harden",
      set: expect.arrayContaining(["/spec/securityContext/runAsNonRoot"]),
    },
    { module: "pod-os", policy: "Setting/os.write", set: ["/spec/os"] },
  ];
  expect(provenanceOf(draft.object)).toMatchObject(expected);
  expect(provenanceOf(mutated(draft.object, settings).draft.object)).toMatchObject(expected);
});

test("without settings no pod is changed, and no mutating hook is registered", () => {
  expect(podOSWith(MIXED).hooks.filter(({ phase }) => phase === "mutate")).toEqual([]);
  expect(mutated(podWith(WINDOWS), {}).draft.edits).toEqual([]);
});

test("usher is called again if a later webhook changed the object", () => {
  const hook = podOSWith(MIXED, { write: true }).hooks.find(({ phase }) => phase === "mutate");
  expect(hook?.reinvocation).toBe("IfNeeded");
});

test("pods that mention no OS are covered only if some are hardened", () => {
  const conditions = (os: JsonObject) =>
    podOSWith(MIXED, os).hooks.find(({ phase }) => phase === "mutate")?.conditions;
  expect(conditions({ write: true })).toMatchObject([{ name: "mentions-os" }]);
  expect(conditions({ write: true, harden: ["shop"] })).toBeUndefined();
});

describe("a reapply", () => {
  const template = (spec: JsonObject) =>
    workload("apps/v1", "Deployment", { spec: { ...CONTAINERS, ...spec } });
  const reapplied = (object: JsonObject, settings: JsonObject): JsonObject => {
    const metadata = object["metadata"] as JsonObject;
    const annotations = { ...(metadata["annotations"] as JsonObject), "usher.dev/reapply": "now" };
    const request = { ...object, metadata: { ...metadata, annotations } };
    return mutated(request, settings, MIXED, { operation: "UPDATE", oldObject: object }).draft.object;
  };
  const HARDENED = { write: true, harden: ["shop"] };

  test("writes the same again with the same settings", () => {
    const stored = mutated(template(WINDOWS), HARDENED).draft.object;
    expect(provenanceOf(stored).map(({ policy }) => policy)).toEqual([
      "Setting/os.harden",
      "Setting/os.write",
    ]);
    expect(reapplied(stored, HARDENED)["spec"]).toEqual(stored["spec"]);
  });

  test("removes values of a setting that was switched off", () => {
    const stored = mutated(template(WINDOWS), HARDENED).draft.object;
    const now = reapplied(stored, { write: true });
    expect(now["spec"]).toEqual(mutated(template(WINDOWS), { write: true }).draft.object["spec"]);
    expect(provenanceOf(now).map(({ policy }) => policy)).toEqual(["Setting/os.write"]);
  });
});
