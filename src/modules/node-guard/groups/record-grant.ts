import { allow, type Result } from "../../../core/decision/decision.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import { nameIn } from "../../../core/decision/status.ts";
import { stringAt } from "../../../core/json.ts";
import type { Hook } from "../../../core/module/hook.ts";
import type { Context } from "../../../core/module/module.ts";
import { MODULE } from "../settings.ts";
import { GRANTED_BY } from "./override.ts";

const PATH = ["metadata", "annotations", GRANTED_BY];

/** Fail-open: an override counts whether or not its author could be recorded; the API server's audit log has the author, too. */
export const OVERRIDE_HOOK: Hook = {
  name: `${MODULE}-override`,
  module: MODULE,
  phase: "mutate",
  rules: [
    {
      groups: ["usher.dev"],
      versions: ["v1alpha1"],
      resources: ["nodeguardoverrides"],
      operations: ["CREATE", "UPDATE"],
      scope: "Cluster",
    },
  ],
  failure: "open",
  tooLarge: "allow",
  timeoutSeconds: 3,
  sideEffects: "None",
  reinvocation: "IfNeeded",
};

/** Records the user who creates an override, and keeps the record unchanged from then on. */
export function recordGrant({ request, draft, trace }: Context): Result {
  const created = request.operation === "CREATE";
  const by = created ? request.userInfo.username : stringAt(draft.old, ...PATH);
  trace?.({
    policy: { kind: "NodeGuardOverride", name: nameIn(request.name, draft.object) },
    applies: by === undefined ? "not" : "applies",
    why: by === undefined ? "nothing records who granted it" : `granted by ${by}`,
  });
  if (by === undefined || stringAt(draft.object, ...PATH) === by) return allow();
  const finding: Finding = {
    rule: "override",
    outcome: "applied",
    path: PATH,
    message: `granted by ${by}`,
    recordedByModule: true,
    audit: { key: "granted-by", value: by },
  };
  draft.set(PATH, by, finding);
  return allow();
}
