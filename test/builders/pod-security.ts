import type { AdmissionRequest } from "../../src/core/decision/request.ts";
import { effectsOf } from "../../src/core/evaluate/effects.ts";
import { evaluate } from "../../src/core/evaluate/evaluate.ts";
import type { Evaluation } from "../../src/core/evaluate/evaluate-hooks.ts";
import { responseOf } from "../../src/core/evaluate/response.ts";
import { Gates } from "../../src/core/installation/gates.ts";
import { DEFAULT_INSTALLATION, type Installation } from "../../src/core/installation/installation.ts";
import type { JsonObject } from "../../src/core/json.ts";
import { stringAt } from "../../src/core/json.ts";
import { parseVersion } from "../../src/core/kubernetes/versions.ts";
import { type WorkloadKind, workloadTable } from "../../src/core/kubernetes/workloads.ts";
import { Assembly } from "../../src/core/module/assembly.ts";
import type { Phase } from "../../src/core/module/hook.ts";
import { podOS } from "../../src/modules/pod-os/index.ts";
import { callOf } from "./evaluation.ts";
import { outside } from "./outside.ts";
import { namespace } from "./policy.ts";

export const NOW = Date.parse("2026-11-16T12:00:00Z");

/** A kind listed in a configuration. */
export const ROLLOUT: WorkloadKind = {
  group: "argoproj.io",
  version: "v1alpha1",
  kind: "Rollout",
  resource: "rollouts",
  template: ["spec", "template"],
};

interface Given {
  readonly settings?: JsonObject;
  /** The labels of namespace `shop`, without their prefix. */
  readonly labels?: Readonly<Record<string, string>>;
  readonly exceptions?: readonly JsonObject[];
  readonly gate?: boolean;
  /** The version of the API server. @default unknown */
  readonly server?: string;
  readonly installation?: Partial<Installation>;
}

/** The module as installed. */
export function podSecurityWith({ settings = {}, labels = {}, exceptions = [], ...given }: Given): Assembly {
  const gates = new Gates(podOS.gates ?? [], new Map([["IdentifyPodOS", given.gate ?? true]]));
  const installation = {
    ...DEFAULT_INSTALLATION,
    workloads: workloadTable([ROLLOUT]),
    settings: { "pod-os": settings },
    ...given.installation,
  };
  const assembly = new Assembly([podOS], installation, gates);
  const version = parseVersion(given.server ?? "");
  if (version !== undefined) assembly.observeServerVersion({ effective: version, binary: version });
  assembly.apply([
    { resource: "namespaces", namespace: "", name: "shop", object: labelled("shop", labels) },
    ...exceptions.map((object) => ({
      resource: "podsecurityexceptions.usher.dev",
      namespace: "",
      name: stringAt(object, "metadata", "name") ?? "",
      object,
    })),
  ]);
  return assembly;
}

/** A namespace with Pod Security labels, given without their prefix. */
export function labelled(name: string, labels: Readonly<Record<string, string>>): JsonObject {
  const full = Object.entries(labels).map(([key, value]) => [`pod-security.kubernetes.io/${key}`, value]);
  return namespace(name, Object.fromEntries(full));
}

/** The result of a request: response, increments of upstream's counters, events. */
export async function asked(
  assembly: Assembly,
  request: AdmissionRequest,
  { phase = "validate", world = outside() }: { phase?: Phase; world?: ReturnType<typeof outside> } = {},
) {
  const evaluation: Evaluation = await evaluate(callOf(assembly, request, { phase, now: NOW }), world);
  const { events } = effectsOf(evaluation);
  const steps = evaluation.counts.map(({ metric, labels }) => `${metric} ${Object.values(labels).join(" ")}`);
  const counts = steps.filter((step) => step.startsWith("pod_security_"));
  const pods = steps.filter((step) => step.startsWith("usher_pod_os_pods"));
  return { ...responseOf(evaluation), counts, pods, events, findings: evaluation.findings };
}

export function exception(name: string, spec: JsonObject): JsonObject {
  return {
    apiVersion: "usher.dev/v1alpha1",
    kind: "PodSecurityException",
    metadata: { name },
    spec: { namespaces: ["shop"], expires: "2027-01-01T00:00:00Z", ...spec },
  };
}
