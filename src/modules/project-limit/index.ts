import { notCompiled } from "../../core/module/compile.ts";
import { defineModule } from "../../core/module/module.ts";
import { defineReconciler } from "../../core/module/reconciler.ts";
import { CODES } from "./codes.ts";
import { dashboard } from "./dashboard.ts";
import { declaration } from "./declaration.ts";
import { evaluatorOf } from "./evaluator.ts";
import { limitHooks } from "./hooks/hooks.ts";
import { OPERAND_WEBHOOK } from "./hooks/operand-webhook.ts";
import { projectRequestLimit } from "./kinds.ts";
import { LEDGER_METRICS } from "./ledger/metrics.ts";
import { projectUsage } from "./ledger/project-usage.ts";
import { LEDGERS } from "./ledger/reconcile-ledgers.ts";
import { MUTATIONS } from "./mutations.ts";
import { operator } from "./operator/operator.ts";
import { USER_LABELS } from "./policy/limit.ts";
import type { ProjectLimits } from "./policy/policy.ts";
import { PROJECTS } from "./projects.ts";
import { limitReconciler } from "./reconciler.ts";
import { PROJECT_REQUESTS } from "./usage/enforced.ts";
import { USAGE_METRICS } from "./usage/metrics.ts";
import { standing } from "./usage/subject-usage.ts";

/** How many projects, or namespaces, a user may have. */
export const projectLimit = defineModule<ProjectLimits>({
  name: declaration.name,
  summary: declaration.summary,
  dashboard,
  kinds: [projectRequestLimit],
  stateKinds: [projectUsage],
  reads: [
    PROJECTS,
    LEDGERS,
    OPERAND_WEBHOOK,
    PROJECT_REQUESTS,
    {
      // For the status and metrics; a request reads its user live.
      resource: "users",
      group: "user.openshift.io",
      version: "v1",
      kind: "User",
      scope: "Cluster",
      keep: [["metadata", "labels"]],
      leaderOnly: true,
      optional: true,
      why: "report which limit is whose",
    },
  ],
  hooks: limitHooks,
  // Only `cluster` becomes a policy.
  assemble: ([limits]) => evaluatorOf(limits),
  access: [USER_LABELS],
  reconciler: defineReconciler(limitReconciler),
  standing,
  compile: ({ policies }) =>
    policies.map(({ ref }) =>
      notCompiled(
        ref,
        "the limits",
        "an in-tree policy sees one request, not the number of a user's projects",
      ),
    ),
  metrics: [...USAGE_METRICS, ...LEDGER_METRICS],
  mutations: MUTATIONS,
  codes: CODES,
  operator,
});
