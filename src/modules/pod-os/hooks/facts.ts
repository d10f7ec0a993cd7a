import { allow, deny } from "../../../core/evaluate/decision.ts";
import { exemptNamespaces } from "../../../core/module/installation.ts";
import { osFindings } from "../os/contradictions.ts";
import { IDENTIFY_POD_OS, MODULE, settingsOf } from "../settings.ts";
import type { Part } from "./part.ts";
import { changedTemplate } from "./request-template.ts";
import { workloadRules } from "./workload-rules.ts";

/** Reports what is wrong about the OS of pods and templates. */
export const facts: Part = {
  name: MODULE,
  hooks: (installation, gates) => [
    {
      name: MODULE,
      module: MODULE,
      phase: "validate",
      rules: gates.enabled(IDENTIFY_POD_OS)
        ? workloadRules(installation.workloads.all, ["CREATE", "UPDATE"])
        : [],
      failure: "open",
      timeoutSeconds: 2,
      namespaces: { except: exemptNamespaces(installation) },
      sideEffects: "NoneOnDryRun",
    },
  ],
  evaluate: (context) => {
    const changed = changedTemplate(context);
    if (changed === undefined || !context.gates.enabled(IDENTIFY_POD_OS)) return allow();
    const findings = osFindings(context, changed, settingsOf(context.installation).os.contradictions);
    const refused = findings.some(({ outcome }) => outcome === "violated");
    return refused ? deny({ code: 403, reason: "Forbidden" }, findings) : allow(findings);
  },
};
