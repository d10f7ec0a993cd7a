import { defineModule, type Module } from "../../core/module/module.ts";
import { CODES } from "./codes.ts";
import { declaration } from "./declaration.ts";
import { GuardEvaluator } from "./evaluator.ts";
import { hooks } from "./hooks/hooks.ts";
import { override, policy, policyConfig, scheduler } from "./kinds.ts";
import type { GuardPolicy } from "./policy/guard-policy.ts";
import { GATE, MODULE, settingsSchema } from "./settings.ts";

/** Keeps unauthorised workloads off protected nodes, the control plane's first. */
export const nodeGuard: Module = defineModule<GuardPolicy>({
  name: MODULE,
  summary: declaration.summary,
  kinds: [policyConfig, policy, scheduler, override],
  reads: [
    {
      resource: "nodes",
      group: "",
      version: "v1",
      kind: "Node",
      scope: "Cluster",
      keep: [
        ["metadata", "labels"],
        ["metadata", "creationTimestamp"],
        ["spec", "taints"],
        ["spec", "unschedulable"],
      ],
    },
    {
      // Whether it is served says which built-in lists count.
      resource: "clusterversions",
      group: "config.openshift.io",
      version: "v1",
      kind: "ClusterVersion",
      scope: "Cluster",
      keep: [],
      optional: true,
    },
  ],
  hooks,
  assemble: (policies, installation) => new GuardEvaluator(policies, installation),
  settings: settingsSchema,
  gates: [GATE],
  codes: CODES,
});
