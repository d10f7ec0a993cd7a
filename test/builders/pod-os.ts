import type { AdmissionRequest } from "../../src/core/decision/request.ts";
import { evaluate, type Host } from "../../src/core/evaluate/evaluate.ts";
import type { Evaluation } from "../../src/core/evaluate/evaluate-hooks.ts";
import { DEFAULT_INSTALLATION } from "../../src/core/installation/installation.ts";
import { type JsonObject, stringAt } from "../../src/core/json.ts";
import type { Assembly } from "../../src/core/module/assembly.ts";
import type { Phase } from "../../src/core/module/hook.ts";
import { podOS } from "../../src/modules/pod-os/index.ts";
import { assemblyOf, callOf } from "./evaluation.ts";
import { outside } from "./outside.ts";

const RESOURCES: Readonly<Record<string, string>> = {
  Node: "nodes",
  RuntimeClass: "runtimeclasses.node.k8s.io",
};

/** A node with its OS label and the OS that its kubelet reports. */
export function osNode(
  name: string,
  { label, reports, kubelet = "v1.37.1" }: { label?: string; reports?: string; kubelet?: string },
): JsonObject {
  return {
    apiVersion: "v1",
    kind: "Node",
    metadata: {
      name,
      uid: `uid-of-${name}`,
      resourceVersion: "7",
      ...(label === undefined ? {} : { labels: { "kubernetes.io/os": label } }),
    },
    status: {
      nodeInfo: { kubeletVersion: kubelet, ...(reports === undefined ? {} : { operatingSystem: reports }) },
    },
  };
}

/** The module with its loaded state and the settings of `os`. */
export function podOSWith(objects: readonly JsonObject[], os: JsonObject = {}): Assembly {
  const changes = objects.map((object) => ({
    resource: RESOURCES[stringAt(object, "kind") ?? ""] ?? "",
    namespace: "",
    name: stringAt(object, "metadata", "name") ?? "",
    object,
  }));
  return assemblyOf([podOS], changes, { ...DEFAULT_INSTALLATION, settings: { "pod-os": { os } } });
}

/** Calls all hooks of one phase. */
export function asksPodOS(
  assembly: Assembly,
  request: AdmissionRequest,
  phase: Phase,
  world: Host = outside(),
): Evaluation | Promise<Evaluation> {
  return evaluate(callOf(assembly, request, { phase }), world);
}
