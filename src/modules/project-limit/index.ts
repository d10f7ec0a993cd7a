import { defineModule } from "../../core/module/module.ts";
import { defineReconciler } from "../../core/module/reconciler.ts";
import { CODES } from "./codes.ts";
import { BY_REQUESTER, BY_REQUESTER_NAMESPACE, REQUESTER } from "./decision/count.ts";
import { declaration } from "./declaration.ts";
import { evaluatorOf } from "./evaluator.ts";
import { limitHooks } from "./hooks/hooks.ts";
import { projectRequestLimit } from "./kinds.ts";
import { LEDGER_METRICS } from "./ledger/metrics.ts";
import { LEDGERS, ledgerReconciler } from "./ledger/reconcile-ledgers.ts";
import { projectUsage } from "./ledger/usage.ts";
import type { Limits } from "./policy/policy.ts";

/** How many projects, or namespaces, a user may have. */
export const projectLimit = defineModule<Limits>({
  name: declaration.name,
  summary: declaration.summary,
  kinds: [projectRequestLimit],
  stateKinds: [projectUsage],
  reads: [
    {
      resource: "namespaces",
      group: "",
      version: "v1",
      kind: "Namespace",
      scope: "Cluster",
      keep: [
        ["metadata", "annotations", REQUESTER],
        ["status", "phase"],
      ],
      indexes: [BY_REQUESTER, BY_REQUESTER_NAMESPACE],
    },
    LEDGERS,
  ],
  hooks: limitHooks,
  // Only `cluster` becomes a policy.
  assemble: ([limits]) => evaluatorOf(limits),
  reconciler: defineReconciler(ledgerReconciler),
  metrics: LEDGER_METRICS,
  access: () => [{ group: "user.openshift.io", resource: "users", verbs: ["get"] }],
  codes: CODES,
});
