import { allow, deny, type Result } from "../../../core/evaluate/decision.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import { policyName } from "../../../core/evaluate/finding.ts";
import type { AdmissionRequest } from "../../../core/evaluate/request.ts";
import type { StepCounter } from "../../../core/evaluate/step-counter.ts";
import { equal, isObject, type JsonObject } from "../../../core/json.ts";
import { isMirrorPod, labelsOf } from "../../../core/kubernetes/object.ts";
import { unboundSpec } from "../../../core/kubernetes/pod-state.ts";
import { podTemplateOf, specPath, type WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import { fieldPath, type Path } from "../../../core/path.ts";
import type { PolicyIndex } from "../../../core/policy/policy-index.ts";
import type { UnmetRequirement } from "../criteria/criterion.ts";
import { eventAbout } from "../merge/report.ts";
import { MAX_STEPS, WorkBudgets } from "../merge/work-budget.ts";
import type { PlacementPolicy } from "../policy/policy.ts";
import { select } from "../select/select.ts";
import { isPod, leftAlone, notTargeted } from "../select/target.ts";
import { unmetRequirements } from "./unmet-requirements.ts";

/** Comparing is quicker than writing. */
const STEPS = 4 * MAX_STEPS;

/**
 * The validating side: whether an object, as all webhooks have left it, meets the requirements of the policies that enforce. What an UPDATE
 * did not remove is not judged again, or a policy written today would stop every change of yesterday's workloads.
 */
export function enforce(context: Context, index: PolicyIndex<PlacementPolicy>): Result {
  const { request, object: draft, installation } = context;
  const workload = installation.workloads.byResource(request.resource.group, request.resource.resource);
  if (workload === undefined || request.object === undefined || request.subResource !== "") return allow();
  // Hardly any field of an existing pod may change, and changes by schedulers and gate controllers are as they should be.
  if (isPod(workload) && request.operation !== "CREATE") return allow();
  const template = podTemplateOf(draft.object, workload);
  const object = judgedObject(request, draft.object, workload);
  const exempt = leftAlone(object, workload, installation.workloads, request.operation);
  if (template === undefined || exempt !== undefined) return allow();
  const old = request.operation === "UPDATE" ? podTemplateOf(request.oldObject, workload) : undefined;
  if (old !== undefined && equal(old.spec, template.spec) && equal(old.metadata, template.metadata))
    return allow();
  const { trace: _trace, ...untraced } = context;
  const selection = select(index, labelsOf({ metadata: template.metadata ?? {} }), untraced, (policy) =>
    policy.enforcement === "None" ? "it enforces nothing" : notTargeted(policy, workload),
  );
  if ("need" in selection) return selection;
  const findings =
    selection.wanting.length === 0
      ? []
      : judge(selection.wanting, template.spec, old, specPath(workload), context.steps);
  const refused = findings.some(({ outcome }) => outcome === "violated");
  return refused ? deny({ code: 403, reason: "Forbidden" }, findings) : allow(findings);
}

function judge(
  policies: readonly PlacementPolicy[],
  podSpec: JsonObject | undefined,
  old: { readonly spec?: JsonObject | undefined } | undefined,
  spec: Path,
  steps: StepCounter | undefined,
): Finding[] {
  const [budgets, oldBudgets] = [new WorkBudgets(STEPS, steps), new WorkBudgets(STEPS, steps)];
  return policies.flatMap((policy) => {
    const [budget, oldBudget] = [budgets.of(policy.ref), oldBudgets.of(policy.ref)];
    const before =
      old === undefined || oldBudget.exceeded ? [] : unmetRequirements(policy.criteria, old.spec, oldBudget);
    const unmet = budget.exceeded ? [] : unmetRequirements(policy.criteria, podSpec, budget);
    // An object that was as large before is not stopped for it now.
    if (budget.exceeded) return old === undefined || !oldBudget.exceeded ? [unjudged(policy, spec)] : [];
    return unmet
      .filter(({ path, wants }) => !before.some((one) => equal(one.path, path) && one.wants === wants))
      .map((one) => findingOf(policy, one, spec));
  });
}

/**
 * A pod that is created with a node can't be placed, but it can be refused: otherwise naming a node would bypass enforcement. So would
 * the annotation of a mirror pod, which anyone can write: it counts from kubelets only.
 */
function judgedObject(
  { userInfo }: AdmissionRequest,
  object: JsonObject,
  workload: WorkloadKind,
): JsonObject {
  if (!isPod(workload) || (isMirrorPod(object) && userInfo.username.startsWith("system:node:")))
    return object;
  const { annotations: _annotations, ...metadata } = isObject(object["metadata"]) ? object["metadata"] : {};
  return { ...object, metadata, spec: unboundSpec(isObject(object["spec"]) ? object["spec"] : {}) };
}

function findingOf(policy: PlacementPolicy, { path, wants }: UnmetRequirement, spec: Path): Finding {
  const place = [...spec, ...path];
  const message = `policy ${policyName(policy.ref)} requires ${wants} at ${fieldPath(place)}, which the object does not have; remove what conflicts with it, or exempt the object in the policy`;
  return enforcementFinding(policy, "USHER-P30", place, message);
}

/** Otherwise an object that is large enough would bypass enforcement. */
function unjudged(policy: PlacementPolicy, spec: Path): Finding {
  const message = `comparing this object with the requirements of policy ${policyName(policy.ref)} exceeds the work budget for one object; use fewer terms and elements in the object, or fewer policies`;
  return enforcementFinding(policy, "USHER-P12", spec, message);
}

function enforcementFinding(policy: PlacementPolicy, code: string, path: Path, message: string): Finding {
  const refuses = policy.enforcement === "Refuse";
  return {
    policy: policy.ref,
    rule: "enforcement",
    outcome: refuses ? "violated" : "would-violate",
    code,
    path,
    message,
    ...(refuses ? {} : { warn: 65 }),
    audit: { key: refuses ? "refused" : "unmet", value: policyName(policy.ref) },
    event: eventAbout(policy.ref, "Warning", refuses ? "PlacementRefused" : "PlacementUnmet"),
  };
}
