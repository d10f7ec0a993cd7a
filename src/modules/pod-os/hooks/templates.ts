import { isBuiltIn } from "../../../core/kubernetes/workloads.ts";
import { evaluateTemplate } from "../security/admission/evaluate-template.ts";
import { MODULE, settingsOf } from "../settings.ts";
import { type Handler, workloadRules } from "./handler.ts";

/** Evaluates pod templates: in place of the API server's plugin, or what the plugin does not cover. */
export const templates: Handler = {
  name: "pod-security-templates",
  hooks: (installation) => {
    const { mode, templates: action } = settingsOf(installation).podSecurity;
    const every = mode === "Replace" || action === "Deny";
    const kinds = installation.workloads.all.filter(
      (kind) => kind.template.length > 0 && (every || !isBuiltIn(kind)),
    );
    return [
      {
        name: "pod-security-templates",
        module: MODULE,
        phase: "validate",
        rules: workloadRules(kinds, ["CREATE", "UPDATE"]),
        failure: "open",
        tooLarge: action === "Deny" ? "deny" : "allow",
        timeoutSeconds: 5,
        // A fail-open hook blocks nothing, and labels of the control plane's namespaces apply too.
        namespaces: { except: [installation.namespace] },
        sideEffects: "NoneOnDryRun",
      },
    ];
  },
  evaluate: evaluateTemplate,
  rule: { kind: "PodSecurity", name: "pod-security-templates" },
  nothing: "the update leaves the template as it is, or every level is privileged",
};
