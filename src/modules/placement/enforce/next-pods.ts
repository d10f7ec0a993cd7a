import { allow, type Decision, type NeedMore, need } from "../../../core/decision/decision.ts";
import type { Finding } from "../../../core/decision/finding.ts";
import type { Need } from "../../../core/decision/need.ts";
import { type AdmissionRequest, resourceName } from "../../../core/decision/request.ts";
import { draftOf } from "../../../core/evaluate/evaluate-hooks.ts";
import { at, isObject, type JsonObject } from "../../../core/json.ts";
import { isBeingDeleted, labelsOf } from "../../../core/kubernetes/object.ts";
import {
  POD,
  type PodTemplate,
  podTemplateOf,
  type WorkloadKind,
} from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import { fieldPath } from "../../../core/path.ts";
import { policyName } from "../../../core/policy/policy-ref.ts";
import { ComparedPod, unmetRequirements } from "../criteria/unmet.ts";
import { WorkLimits } from "../criteria/work-limit.ts";
import type { Policies } from "../place/decision.ts";
import { place } from "../place/place.ts";
import type { PlacementPolicy } from "../policy/policy.ts";
import { notTargeted } from "../select/eligibility.ts";
import { select } from "../select/select.ts";
import { isPlaced } from "../settings.ts";
import { isController } from "./enforcement-scope.ts";

/** Kinds whose pods are not evaluated at creation: a PodTemplate has none, and those of a DaemonSet follow its template. */
const WITHOUT_JUDGED_PODS: ReadonlySet<string> = new Set(["Pod", "PodTemplate", "DaemonSet"]);

/**
 * A workload older than a policy keeps its template, and its next pods are refused: its author gets a warning when it
 * is updated, or scaled up. The pod is tried as it would be created, so that the policy's injections into pods count.
 */
export function warnOfNextPods(
  context: Context,
  policies: Policies,
  workload: WorkloadKind,
): Decision | NeedMore {
  const { request, installation } = context;
  if (WITHOUT_JUDGED_PODS.has(workload.kind) || !isPlaced(POD, installation)) return allow();
  // Controllers read no warnings.
  if (isController(request, installation)) return allow();
  const object = request.subResource === "" ? context.draft.object : scaledObject(context, workload);
  if (object !== undefined && "need" in object) return object as NeedMore;
  const template = podTemplateOf(object, workload);
  if (object === undefined || template === undefined || isBeingDeleted(object)) return allow();
  const refusing = refusingPolicies(context, policies, template);
  if ("need" in refusing) return refusing;
  if (refusing.length === 0) return allow();
  const created = podRequest(request, podFrom(template, request.namespace));
  const draft = draftOf(created);
  try {
    const placed = place({ ...context, request: created, draft }, policies);
    if ("need" in placed) return placed;
    const limits = new WorkLimits();
    const pod = new ComparedPod(podTemplateOf(draft.object, POD)?.spec);
    return allow(
      refusing.flatMap((policy) => {
        const [first] = unmetRequirements(policy.criteria, pod, limits.of(policy.ref));
        return first === undefined ? [] : [warningOf(policy, workload, first.wants, fieldPath(first.path))];
      }),
    );
  } finally {
    // The pod is built from the workload's own template, which may be too large to be copied.
    draft.undo(0);
  }
}

/** A Scale has no template: the workload is read, but only if it will have more pods. */
function scaledObject(
  { request, facts }: Context,
  workload: WorkloadKind,
): JsonObject | NeedMore | undefined {
  const [before, after] = [request.oldObject, request.object].map((scale) => at(scale, "spec", "replicas"));
  if (typeof after !== "number" || after <= (typeof before === "number" ? before : 0)) return undefined;
  const stored: Need = {
    get: { resource: resourceName(workload), namespace: request.namespace, name: request.name },
  };
  const fact = facts.of(stored);
  if (fact === undefined) return need(stored);
  return "found" in fact && isObject(fact.found) ? fact.found : undefined;
}

/** Policies that refuse pods with this template; usually none. */
function refusingPolicies(
  context: Context,
  { all }: Policies,
  template: PodTemplate,
): readonly PlacementPolicy[] | NeedMore {
  const labels = labelsOf({ metadata: template.metadata ?? {} });
  const selection = select(all, labels, context, (policy) =>
    policy.enforcement === "Refuse" ? notTargeted(policy, POD) : "it refuses nothing",
  );
  if ("need" in selection) return selection;
  const limits = new WorkLimits();
  const pod = new ComparedPod(template.spec);
  return selection.wanting.filter(
    ({ criteria, ref }) => unmetRequirements(criteria, pod, limits.of(ref)).length > 0,
  );
}

function podFrom({ metadata, spec }: PodTemplate, namespace: string): JsonObject {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { ...metadata, namespace },
    spec: spec ?? {},
  };
}

function podRequest(request: AdmissionRequest, pod: JsonObject): AdmissionRequest {
  const { group, version, kind, resource } = POD;
  return {
    ...request,
    kind: { group, version, kind },
    resource: { group, version, resource },
    subResource: "",
    operation: "CREATE",
    name: "",
    object: pod,
    oldObject: undefined,
  };
}

function warningOf(policy: PlacementPolicy, { kind }: WorkloadKind, wants: string, field: string): Finding {
  return {
    policy: policy.ref,
    rule: "enforcement",
    outcome: "would-violate",
    code: "USHER-P31",
    message: `new pods of this ${kind} will be refused: policy ${policyName(policy.ref)} requires ${wants} at ${field}; change the pod template`,
    warn: 64,
    audit: { key: "unmet", value: policyName(policy.ref) },
  };
}
