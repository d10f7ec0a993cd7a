import { allow } from "../../../core/evaluate/decision.ts";
import { exemptNamespaces } from "../../../core/module/installation.ts";
import { IDENTIFY_POD_OS, MODULE } from "../settings.ts";
import type { Part } from "./part.ts";
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
  evaluate: () => allow(),
};
