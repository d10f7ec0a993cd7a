import { allow, type Result } from "../../../core/evaluate/decision.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import { describeRequest } from "../../../core/evaluate/request.ts";
import type { JsonObject } from "../../../core/json.ts";
import { isBeingDeleted, isMirrorPod } from "../../../core/kubernetes/object.ts";
import { isBoundSpec, isGatedSpec } from "../../../core/kubernetes/pod-state.ts";
import { podTemplateOf, specPath, type WorkloadKind } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import { provenanceOf } from "../../../core/provenance/annotation.ts";
import { isReapply } from "../../../core/provenance/reapply.ts";
import { takeBack } from "../../../core/provenance/take-back.ts";
import { PodNodes, seenBefore } from "../claims/pod-nodes.ts";
import { reachableGroups, selectionClaims } from "../claims/selection.ts";
import { REQUIRED, REQUIRED_TERMS, termsOf } from "../claims/terms.ts";
import { judge } from "../decide/judge.ts";
import { decide, groupRef } from "../decide/report.ts";
import { blockingGroups, isDaemonPod } from "../decide/selection.ts";
import { accountOf, describePod, type GuardedPod } from "../decide/subject.ts";
import { type Group, steers } from "../groups/group.ts";
import { MODULE } from "../settings.ts";
import { excludeSelector } from "./exclude.ts";
import { excludeGroup } from "./exclude-group.ts";

/**
 * Keeps pods that need not run on protected nodes off them, where they are not authorised there: a scheduler that only learns of it at
 * bind tries again for ever, and preempts others for nothing. Narrows only; idempotent. Pods are steered when they are created and while
 * they wait at a gate; what is too late or too large to steer is refused by the validating phase. DaemonSets are steered by their
 * template, as each of their pods is for one node. An update is steered only off nodes that it makes possible: a changed template makes
 * the DaemonSet controller delete pods.
 */
export function steer(context: Context, all: readonly Group[]): Result {
  const { request, object, installation, facts, view } = context;
  const steering = all.filter(steers);
  const workload = installation.workloads.byResource(request.resource.group, request.resource.resource);
  if (steering.length === 0 || workload === undefined || request.subResource !== "") return allow();
  if (workload.kind === "DaemonSet" && isReapply(object)) takeBack(object, MODULE);
  const { spec } = podTemplateOf(object.object, workload) ?? {};
  const stored = request.operation === "UPDATE" ? podTemplateOf(object.old, workload)?.spec : undefined;
  if (spec === undefined || isBoundSpec(spec) || isBeingDeleted(object.object)) return allow();
  const isTemplate = workload.template.length > 0;
  if (isTemplate ? workload.kind !== "DaemonSet" : !isOpen(context, stored)) return allow();
  const subject: GuardedPod = {
    request,
    name: isTemplate ? `a pod of ${describeRequest(request)}` : describePod(request),
    namespace: request.namespace,
    account: accountOf(spec),
  };
  const blocking = blockingGroups(steering, subject, { facts }, "pod");
  if ("need" in blocking) return blocking;
  if (blocking.groups.length === 0) return allow();
  const pod = new PodNodes(spec);
  const before = seenBefore(stored);
  const reachable = reachableGroups(pod, blocking.groups, view, before);
  const confirmed = confirmations(context, workload, pod, blocking.groups);
  if (reachable.length === 0) return allow(confirmed);
  const found = selectionClaims(pod, reachable, { view, facts });
  // The validating phase reads nodes that are not known here.
  const claims = "need" in found ? [] : found.claims;
  // What can run nowhere else is for the validating phase to refuse.
  if (claims.some(({ claim, group }) => claim.refused && group.earlyRefusal === "Deny")) return allow();
  const findings = [
    ...confirmed,
    ...reachable.flatMap((group) =>
      pod.tooLarge
        ? [tooLarge(workload, group)]
        : exclude(context, workload, group, before?.tooLarge ? undefined : stored),
    ),
  ];
  const incidental = claims.map(({ claim, group, nodes }) =>
    judge({ claim, groups: [group], nodes }, subject, facts),
  );
  const judgements = incidental.flatMap((judged) => ("judgements" in judged ? judged.judgements : []));
  return judgements.length === 0
    ? allow(findings)
    : decide(judgements, subject, { warnOnly: true }, findings);
}

/** Whether the node affinity of a pod may still change: it is created, or waits at a gate. */
function isOpen(context: Context, stored: JsonObject | undefined): boolean {
  const { request, object } = context;
  if (request.operation === "UPDATE") return isGatedSpec(stored);
  return !isMirrorPod(object.object) && !isDaemonPod(context);
}

/** Confirms to the provenance annotation what an earlier call for the same request has added. */
function confirmations(
  { object }: Context,
  workload: WorkloadKind,
  pod: PodNodes,
  groups: readonly Group[],
): Finding[] {
  if (pod.tooLarge || !provenanceOf(object.object).some(({ module }) => module === MODULE)) return [];
  const path = [...specPath(workload), ...REQUIRED];
  const terms = termsOf(object.get(...specPath(workload)));
  return groups.flatMap((group) =>
    terms !== undefined && excludeSelector(terms, group.labelSelector) === "unchanged"
      ? [{ policy: groupRef(group), rule: "steering", outcome: "same", path, message: STEERED.affinity }]
      : [],
  );
}

const STEERED = { tolerations: "tolerations dropped", affinity: "required node affinity added" };

/** Excludes the nodes of one group, and says what could not be done. */
function exclude(
  context: Context,
  workload: WorkloadKind,
  group: Group,
  stored: JsonObject | undefined,
): Finding[] {
  const { request, object, view } = context;
  const isTemplate = workload.template.length > 0;
  const excluded = excludeGroup(object, specPath(workload), group, {
    view,
    stored,
    sameTerms: !isTemplate && request.operation === "UPDATE",
    finding: (what, path) => ({
      policy: groupRef(group),
      rule: "steering",
      outcome: "applied",
      path,
      message: `${STEERED[what]} to keep pods off nodes of protected group ${group.name}`,
      // The author of a workload chose its nodes, and shall not miss some in silence.
      ...(isTemplate ? { code: "USHER-G14", warn: 60 } : {}),
    }),
  });
  return excluded === "done" ? [] : [tooLarge(workload, group)];
}

function tooLarge(workload: WorkloadKind, group: Group): Finding {
  return {
    policy: groupRef(group),
    rule: "steering",
    outcome: "skipped",
    code: "USHER-G13",
    path: [...specPath(workload), ...REQUIRED_TERMS],
    message: `required node affinity is too large to exclude nodes of protected group ${group.name}`,
    warn: 60,
  };
}
