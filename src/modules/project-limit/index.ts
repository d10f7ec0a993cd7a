import { defineModule } from "../../core/module/module.ts";
import { CODES } from "./codes.ts";
import { BY_REQUESTER, BY_REQUESTER_NAMESPACE, REQUESTER } from "./decision/count.ts";
import { declaration } from "./declaration.ts";
import { evaluatorOf } from "./evaluator.ts";
import { limitHooks } from "./hooks/hooks.ts";
import { projectRequestLimit, projectUsage } from "./kinds.ts";
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
  ],
  hooks: limitHooks,
  // Only `cluster` becomes a policy.
  assemble: ([limits]) => evaluatorOf(limits),
  access: () => [{ group: "user.openshift.io", resource: "users", verbs: ["get"] }],
  codes: CODES,
});
