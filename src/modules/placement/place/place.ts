import { allow, type Result } from "../../../core/decision/decision.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import { stringAt } from "../../../core/json.ts";
import { labelsOf } from "../../../core/kubernetes/object.ts";
import { podTemplateOf, specPath } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import { policyKey, policyName } from "../../../core/policy/policy-ref.ts";
import { consumeReapply } from "../../../core/provenance/reapply.ts";
import type { PlacementContext } from "../criteria/context.ts";
import type { PlacementPolicy } from "../policy/policy.ts";
import { leftAlone, notTargeted } from "../select/eligibility.ts";
import { select } from "../select/select.ts";
import { isPlaced } from "../settings.ts";
import { decide, type Policies, refuses, traceAll, unclearFindings } from "./decision.ts";
import { mergePolicies } from "./merge-policies.ts";
import { limitsAtCreation } from "./mutability.ts";
import { placeUpdated } from "./update.ts";

/**
 * Places one object: on CREATE by all policies that select it, on UPDATE by its injections and by policies that inject
 * on update.
 */
export function place(context: Context, policies: Policies): Result {
  const { request, draft, installation } = context;
  const { operation, object, oldObject } = request;
  const workload = installation.workloads.byResource(request.resource.group, request.resource.resource);
  if (workload === undefined || object === undefined) return allow();
  if (!isPlaced(workload, installation)) {
    traceAll(context, policies, "its kind is not among modules.placement.resources of the configuration");
    return allow();
  }
  const template = podTemplateOf(draft.object, workload);
  const exempt = leftAlone(draft.object, workload, installation.workloads, operation);
  if (template === undefined || exempt !== undefined) {
    traceAll(context, policies, exempt ?? "it has no pod template");
    return allow();
  }
  const labels = labelsOf({ metadata: template.metadata ?? {} });
  const placement: PlacementContext = { draft, workload, spec: specPath(workload), labels };
  if (operation !== "UPDATE") return placeCreated(context, placement, policies);
  if (oldObject !== undefined) return placeUpdated(context, placement, policies, oldObject);
  traceAll(context, policies, "an update without the stored object gets nothing");
  return allow();
}

/** A new object gets the criteria of all policies that select it. */
function placeCreated(context: Context, placement: PlacementContext, policies: Policies): Result {
  const { draft, workload, labels } = placement;
  const start = draft.mark();
  const selection = select(policies.all, labels, context, (policy) => notTargeted(policy, workload));
  if ("need" in selection) return selection;
  const findings = unclearFindings(selection);
  if (refuses(findings)) return decide(draft, start, findings);
  // A new object is placed anyway; the reapply request must not stay in it.
  consumeReapply(draft);
  const limits = limitsAtCreation(workload);
  const missing = mergePolicies(context, placement, limits, selection.wanting, findings);
  if (missing !== undefined) return missing;
  findings.push(...halfPlacedGroup(placement, start, selection.wanting));
  return decide(draft, start, findings);
}

/**
 * The pods of a PodGroup are scheduled together or not at all. A policy that selects pods by labels may place some of
 * them only, and then the group may fit nowhere. Members share their namespace, so other policies place all or none.
 */
function halfPlacedGroup(
  { draft, spec }: PlacementContext,
  start: number,
  policies: readonly PlacementPolicy[],
): Finding[] {
  const group = stringAt(draft.get(...spec, "schedulingGroup"), "podGroupName");
  if (group === undefined) return [];
  const placed = new Set(
    draft.edits.slice(start).flatMap(({ finding }) => (finding?.policy ? [policyKey(finding.policy)] : [])),
  );
  const names = policies
    .filter(({ ref, podSelector }) => podSelector?.kind === "requirements" && placed.has(policyKey(ref)))
    .map(({ ref }) => policyName(ref));
  if (names.length === 0) return [];
  return [
    {
      rule: "group",
      outcome: "skipped",
      code: "USHER-P25",
      path: [...spec, "schedulingGroup"],
      message: `policy ${names.join(", ")} selects pods by labels: pods of PodGroup ${group} without them are not placed, and the group may never be scheduled. Give all its pods these labels, or select by namespace`,
      warn: 60,
    },
  ];
}
