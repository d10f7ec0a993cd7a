import type { Finding } from "../../../core/decision/finding.ts";
import type { JsonObject } from "../../../core/json.ts";
import { controllerOf } from "../../../core/kubernetes/object.ts";
import { isBoundSpec } from "../../../core/kubernetes/pod-state.ts";
import { specPath } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import type { RequestTemplate } from "../request-template.ts";
import type { PodOSSettings } from "../settings.ts";
import { OS_LABEL, resolvePodOS } from "./resolve.ts";
import { runtimeClassOf } from "./runtime-class.ts";

/**
 * Problems of a pod's OS sources. Only a contradiction of `spec.os` refuses, and never in a template that has a
 * controller: its controller could not create it.
 */
export function osFindings(
  { draft, view }: Context,
  { workload, template, isPod }: RequestTemplate,
  mode: PodOSSettings["os"]["contradictions"],
): Finding[] {
  const { spec } = template;
  if (spec === undefined) return [];
  const runtimeClass = runtimeClassOf(view, spec);
  const { os, source, contradictions } = resolvePodOS(template, runtimeClass);
  if (os === undefined) return [];
  const path = specPath(workload);
  if (contradictions.length > 0) {
    if (mode === "Disabled" || mode === "Off") return [];
    const controlled = !isPod && controllerOf(draft.object) !== undefined;
    const refuses = mode === "Deny" && source === "explicit" && !controlled;
    return contradictions.map(({ field, message }) => ({
      rule: "os-contradiction",
      outcome: refuses ? "violated" : "would-violate",
      code: "USHER-O01",
      path,
      message: `${field}: ${message}; no node runs such a pod`,
      ...(refuses ? {} : { warn: 60 }),
    }));
  }
  if (source !== "explicit" || isBoundSpec(spec) || selectsOS(spec, os, runtimeClass)) return [];
  return [
    {
      rule: "os-selector",
      outcome: "would-violate",
      code: "USHER-O03",
      path: [...path, "nodeSelector"],
      message: `spec.os is not seen by the scheduler: add nodeSelector ${OS_LABEL}: ${os}`,
      warn: 50,
    },
  ];
}

/** Whether the scheduler chooses only nodes of this OS for the pod: it uses neither `spec.os` nor labels of the pod. */
export function selectsOS(spec: JsonObject, os: string, runtimeClass?: JsonObject): boolean {
  const { os: _os, ...rest } = spec;
  return resolvePodOS({ spec: rest }, runtimeClass).os === os;
}
