import { hasMatchConditions } from "../../../core/kubernetes/versions.ts";
import { defineModule } from "../../../core/module/module.ts";
import { defineReconciler } from "../../../core/module/reconciler.ts";
import { CODES } from "../codes.ts";
import { declaration } from "../declaration.ts";
import { evaluatorOf } from "../evaluator.ts";
import { projectRequestHook } from "../hooks/hooks.ts";
import { LEDGER_METRICS } from "../ledger/metrics.ts";
import { projectUsage } from "../ledger/project-usage.ts";
import { LEDGERS, ledgerReconciler } from "../ledger/reconcile-ledgers.ts";
import { USER_LABELS } from "../policy/limit.ts";
import { limitConfiguration } from "../policy/limit-configuration.ts";
import type { ProjectLimits } from "../policy/policy.ts";
import { PROJECTS } from "../projects.ts";

/** The module as the operand has it: limits of a file in place of a custom resource, and ProjectRequests alone. The ledger is shared. */
export const operandModule = defineModule<ProjectLimits>({
  name: declaration.name,
  summary: declaration.summary,
  kinds: [limitConfiguration],
  stateKinds: [projectUsage],
  reads: [PROJECTS, LEDGERS],
  hooks: ([limits], view) => [projectRequestHook(limits, hasMatchConditions(view))],
  assemble: ([limits]) => evaluatorOf(limits),
  access: [USER_LABELS],
  reconciler: defineReconciler(ledgerReconciler),
  metrics: LEDGER_METRICS,
  codes: CODES,
});
