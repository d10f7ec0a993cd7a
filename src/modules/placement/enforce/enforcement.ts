import { allow, deny, type Result } from "../../../core/evaluate/decision.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import { policyName } from "../../../core/evaluate/finding.ts";
import type { AdmissionRequest } from "../../../core/evaluate/request.ts";
import { equal, isObject, type JsonObject } from "../../../core/json.ts";
import { isMirrorPod, labelsOf } from "../../../core/kubernetes/object.ts";
import { podTemplateOf, specPath, type WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import { fieldPath, type Path } from "../../../core/path.ts";
import type { SelectorIndex } from "../../../core/policy/selector-index.ts";
import { MOST_STEPS, WorkBudgets } from "../merge/work-budget.ts";
import type { PlacementPolicy } from "../policy/policy.ts";
import { select } from "../select/select.ts";
import { isPod, leftAlone, notTargeted } from "../select/target.ts";
import { type UnmetRequirement, unmetRequirements } from "./unmet-requirements.ts";

/** Comparing is quicker than writing. */
const STEPS = 4 * MOST_STEPS;

/**
 * The validating twin: whether an object, as all webhooks have left it, has what the policies that enforce demand of it. What an
 * UPDATE did not take away is not judged again, or a policy written today would stop every change of yesterday's workloads.
 */
export function validate(context: Context, index: SelectorIndex<PlacementPolicy>): Result {
  const { request, object: draft, installation } = context;
  const workload = installation.workloads.byResource(request.resource.group, request.resource.resource);
  if (workload === undefined || request.object === undefined || request.subResource !== "") return allow();
  // Of a pod that exists hardly anything may change, and what a scheduler or the opener of a gate does is as it should be.
  if (isPod(workload) && request.operation !== "CREATE") return allow();
  const template = podTemplateOf(draft.object, workload);
  if (
    template === undefined ||
    leftAlone(
      judged(request, draft.object, workload),
      workload,
      installation.workloads,
      request.operation,
    ) !== undefined
  )
    return allow();
  const old = request.operation === "UPDATE" ? podTemplateOf(request.oldObject, workload) : undefined;
  if (old !== undefined && equal(old.spec, template.spec) && equal(old.metadata, template.metadata))
    return allow();
  const { trace: _trace, ...quiet } = context;
  const selection = select(index, labelsOf({ metadata: template.metadata ?? {} }), quiet, (policy) =>
    policy.enforcement === "None" ? "it demands nothing" : notTargeted(policy, workload),
  );
  if ("need" in selection) return selection;
  const findings: Finding[] = [];
  const [efforts, looking] = [new WorkBudgets(STEPS), new WorkBudgets(STEPS)];
  for (const policy of selection.wanting) {
    const [effort, effortBefore] = [efforts.of(policy.ref), looking.of(policy.ref)];
    const before =
      old === undefined || effortBefore.over
        ? []
        : unmetRequirements(policy.criteria, old.spec, effortBefore);
    const lacking = effort.over ? [] : unmetRequirements(policy.criteria, template.spec, effort);
    // What was as large before is not stopped for it now.
    if (effort.over && (old === undefined || !effortBefore.over))
      findings.push(unjudged(policy, specPath(workload)));
    if (effort.over) continue;
    for (const lack of lacking) {
      if (!before.some((one) => equal(one.path, lack.path) && one.wants === lack.wants))
        findings.push(findingOf(policy, lack, specPath(workload)));
    }
  }
  const refused = findings.some(({ outcome }) => outcome === "violated");
  return refused ? deny({ code: 403, reason: "Forbidden" }, findings) : allow(findings);
}

/**
 * A pod that comes with its node can't be placed any more, but it can be refused: else whoever names a node goes past every demand. So
 * too where somebody else than a kubelet says that it mirrors a static pod, for anyone can write that.
 */
function judged({ userInfo }: AdmissionRequest, object: JsonObject, workload: WorkloadKind): JsonObject {
  if (!isPod(workload) || (isMirrorPod(object) && userInfo.username.startsWith("system:node:")))
    return object;
  const { annotations: _annotations, ...metadata } = isObject(object["metadata"]) ? object["metadata"] : {};
  const { nodeName: _nodeName, ...spec } = isObject(object["spec"]) ? object["spec"] : {};
  return { ...object, metadata, spec };
}

function findingOf(policy: PlacementPolicy, { path, wants }: UnmetRequirement, spec: Path): Finding {
  const place = [...spec, ...path];
  return told(
    policy,
    "USHER-P30",
    place,
    `policy ${policyName(policy.ref)} demands ${wants} at ${fieldPath(place)}, and it is not there; take out what stands against it, or ask for an exception in the policy`,
  );
}

/** Else who makes his object large enough would go past every demand. */
function unjudged(policy: PlacementPolicy, spec: Path): Finding {
  const message = `whether this object has what policy ${policyName(policy.ref)} demands is more work than usher does for one object; ask for less in the object, or use fewer policies here`;
  return told(policy, "USHER-P12", spec, message);
}

function told(policy: PlacementPolicy, code: string, path: Path, message: string): Finding {
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
    event: {
      type: "Warning",
      reason: refuses ? "PlacementRefused" : "PlacementUnmet",
      regarding: {
        kind: policy.ref.kind,
        ...(policy.ref.namespace === undefined ? {} : { namespace: policy.ref.namespace }),
        name: policy.ref.name,
      },
    },
  };
}
