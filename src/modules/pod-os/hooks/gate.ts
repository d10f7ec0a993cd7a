import { allow } from "../../../core/decision/decision.ts";
import { exemptNamespaces } from "../../../core/installation/installation.ts";
import { at } from "../../../core/json.ts";
import { controllerOf } from "../../../core/kubernetes/object.ts";
import { POD, specPath } from "../../../core/kubernetes/workloads.ts";
import { SENT_PROVENANCE } from "../../../core/provenance/match-condition.ts";
import { IDENTIFY_POD_OS, MODULE } from "../settings.ts";
import { type Handler, workloadRules } from "./handler.ts";

const NAME = "pod-os-gate";

const COMMON = {
  module: MODULE,
  phase: "mutate",
  askedAs: NAME,
  failure: "open",
  tooLarge: "allow",
  timeoutSeconds: 2,
  sideEffects: "None",
  // A later webhook may add it.
  reinvocation: "IfNeeded",
} as const;

/**
 * With the gate off, `spec.os` is dropped as by an API server without the field: silently, on CREATE and if the stored
 * object has none. Stored objects keep it, otherwise each update would roll a workload out.
 */
export const gate: Handler = {
  name: NAME,
  rule: { kind: "FeatureGate", name: IDENTIFY_POD_OS },
  nothing: "the gate is off, and the object has no new spec.os to drop",
  hooks: (installation, gates) => {
    if (gates.enabled(IDENTIFY_POD_OS)) return [];
    const namespaces = { except: exemptNamespaces(installation) };
    const kinds = installation.workloads.all;
    return [
      {
        ...COMMON,
        name: `${NAME}-pods`,
        namespaces,
        rules: workloadRules([POD], ["CREATE", "UPDATE"]),
        conditions: [{ name: "has-os", expression: `has(object.spec.os) || ${SENT_PROVENANCE}` }],
      },
      {
        ...COMMON,
        name: `${NAME}-templates`,
        namespaces,
        rules: workloadRules(
          kinds.filter(({ template }) => template.length > 0),
          ["CREATE", "UPDATE"],
        ),
      },
    ];
  },
  evaluate: ({ request, draft, installation }) => {
    const { group, resource } = request.resource;
    const workload = installation.workloads.byResource(group, resource);
    if (workload === undefined || request.subResource !== "") return allow();
    const path = [...specPath(workload), "os"];
    if (draft.get(...path) === undefined || (at(draft.old, ...path) ?? undefined) !== undefined)
      return allow();
    // A controller compares its templates with its own: if they differed it would create more without end.
    if (workload.template.length > 0 && controllerOf(draft.object) !== undefined) return allow();
    draft.remove(path, undefined);
    return allow();
  },
};
