import { allow, deny, type Result } from "../../../core/decision/decision.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import { equal, type Json, stringAt } from "../../../core/json.ts";
import { isPod, specPath, type WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import { fieldPath, type Path } from "../../../core/path.ts";
import { policyKey, policyName } from "../../../core/policy/policy-ref.ts";
import type { Criteria, UnmetRequirement } from "../criteria/criterion.ts";
import { eventAbout } from "../criteria/report.ts";
import { ComparedPod, unmetRequirements } from "../criteria/unmet.ts";
import { MAX_WORK, WorkLimits } from "../criteria/work-limit.ts";
import type { Policies } from "../place/decision.ts";
import { comparePolicies, type PlacementPolicy } from "../policy/policy.ts";
import { notTargeted } from "../select/eligibility.ts";
import { select } from "../select/select.ts";
import { isPlaced } from "../settings.ts";
import { type EnforcementScope, enforcementScope } from "./enforcement-scope.ts";
import { warnOfNextPods } from "./next-pods.ts";

/** An object is compared with more policies than it is written by. */
const WORK = 4 * MAX_WORK;

/**
 * The validating side: whether an object, after all webhooks, meets the requirements of the policies that enforce.
 * Requirements that an UPDATE did not break are not evaluated again, otherwise a policy written today would block every
 * change of yesterday's workloads; but a policy that did not select the stored object evaluates the new one completely,
 * otherwise labels could be added later.
 */
export function enforce(context: Context, policies: Policies): Result {
  const { trace, ...untraced } = context;
  const result = decide(untraced, policies);
  if (trace === undefined || "need" in result) return result;
  for (const { ref, enforcement } of [...policies.all.items].sort(comparePolicies)) {
    if (enforcement === "None") continue;
    const found = result.findings.filter(
      ({ policy }) => policy !== undefined && policyKey(policy) === policyKey(ref),
    );
    const refuses = found.some(({ outcome }) => outcome === "violated");
    const [first] = found;
    trace({
      policy: ref,
      rule: "enforcement",
      applies: refuses ? "refuses" : first === undefined ? "not" : "applies",
      why: first?.message ?? "nothing that it requires is missing, or it does not judge this object",
    });
  }
  return result;
}

function decide(context: Context, policies: Policies): Result {
  const { request, draft, installation } = context;
  const workload = installation.workloads.byResource(request.resource.group, request.resource.resource);
  if (workload === undefined || request.object === undefined || !isPlaced(workload, installation))
    return allow();
  if (request.subResource !== "") return warnOfNextPods(context, policies, workload);
  const judged = enforcementScope(request, draft.object, workload, installation);
  const findings = judged === undefined ? [] : judge(context, policies, workload, judged);
  if ("need" in findings) return findings;
  if (findings.some(({ outcome }) => outcome === "violated"))
    return deny({ code: 403, reason: "Forbidden" }, findings);
  if (request.operation !== "UPDATE") return allow(findings);
  const warned = warnOfNextPods(context, policies, workload);
  return "need" in warned ? warned : allow([...findings, ...(warned.findings ?? [])]);
}

function judge(
  context: Context,
  { all }: Policies,
  workload: WorkloadKind,
  { template, labels, old }: EnforcementScope,
): Finding[] | Extract<Result, { need: unknown }> {
  const exempt = (policy: PlacementPolicy) =>
    policy.enforcement === "None" ? "it enforces nothing" : notTargeted(policy, workload);
  const selection = select(all, labels, context, exempt);
  if ("need" in selection) return selection;
  if (selection.wanting.length === 0) return [];
  const before = old === undefined ? undefined : select(all, old.labels, context, exempt);
  if (before !== undefined && "need" in before) return before;
  const selectedBefore = new Set(before?.wanting.map(({ ref }) => policyKey(ref)));
  const spec = specPath(workload);
  const [limits, oldLimits] = [new WorkLimits(WORK), new WorkLimits(WORK)];
  const [pod, oldPod] = [new ComparedPod(template.spec), new ComparedPod(old?.template.spec)];
  // Gate controllers remove gates from pods that exist: only a stored object has a version.
  const version = stringAt(context.draft.object, "metadata", "resourceVersion") ?? "";
  const consumed = isPod(workload) && (old !== undefined || version !== "");
  return selection.wanting.flatMap((policy) => {
    const criteria = consumed ? policy.criteria.filter(isLasting) : policy.criteria;
    const wasSelected = old !== undefined && selectedBefore.has(policyKey(policy.ref));
    const [limit, oldLimit] = [limits.of(policy.ref), oldLimits.of(policy.ref)];
    const unmetBefore =
      wasSelected && oldLimit.admits(policy.size.written)
        ? unmetRequirements(criteria, oldPod, oldLimit)
        : [];
    const unmet = limit.admits(policy.size.written) ? unmetRequirements(criteria, pod, limit) : [];
    // An object that was as large before is not stopped for it now.
    if (limit.exceeded) return wasSelected && oldLimit.exceeded ? [] : [unjudged(policy, spec)];
    return unmet
      .filter(({ path, wants }) => !unmetBefore.some((one) => equal(one.path, path) && one.wants === wants))
      .map((one) => findingOf(policy, one, spec, old !== undefined));
  });
}

function isLasting({ criterion }: Criteria[number]): boolean {
  return criterion.consumedByPod !== true;
}

function findingOf(
  policy: PlacementPolicy,
  { path, wants, value }: UnmetRequirement,
  spec: Path,
  update: boolean,
): Finding {
  const place = [...spec, ...path];
  const remedy = update ? ", or add it: the annotation usher.dev/reapply does it for templates" : "";
  const message = `policy ${policyName(policy.ref)} requires ${wants} at ${fieldPath(place)}, which the object does not have; remove what conflicts with it${remedy}, or exempt the object in the policy`;
  return enforcementFinding(policy, "USHER-P30", place, message, value ?? wants);
}

/** Otherwise a large enough object would bypass enforcement. */
function unjudged(policy: PlacementPolicy, spec: Path): Finding {
  const message = `comparing this object with the requirements of policy ${policyName(policy.ref)} exceeds the work budget for one object; use fewer terms and elements in the object, or fewer policies`;
  return enforcementFinding(policy, "USHER-P12", spec, message);
}

function enforcementFinding(
  policy: PlacementPolicy,
  code: string,
  path: Path,
  message: string,
  wants?: Json,
): Finding {
  const refuses = policy.enforcement === "Refuse";
  return {
    policy: policy.ref,
    rule: "enforcement",
    outcome: refuses ? "violated" : "would-violate",
    code,
    path,
    ...(wants === undefined ? {} : { wants }),
    message,
    ...(refuses ? {} : { warn: 65 }),
    audit: { key: refuses ? "refused" : "unmet", value: policyName(policy.ref) },
    event: eventAbout(policy.ref, "Warning", refuses ? "PlacementRefused" : "PlacementUnmet"),
  };
}
