import { allow, type Result } from "../../../core/evaluate/decision.ts";
import { describeRequest } from "../../../core/evaluate/request.ts";
import { type JsonObject, stringAt } from "../../../core/json.ts";
import { isBoundSpec } from "../../../core/kubernetes/pod-state.ts";
import { podTemplateOf, specPath } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import { CLAIMS } from "../claims/claim.ts";
import { PodNodes, seenBefore } from "../claims/pod-nodes.ts";
import { reachableGroups } from "../claims/selection.ts";
import { type Group, steers } from "../groups/group.ts";
import { refusedPod } from "./assign.ts";
import { type ClaimJudgements, judge, membership } from "./judge.ts";
import { type Judgement, verdictOf } from "./judgement.ts";
import { decide } from "./report.ts";
import { blockingGroups, judgeReachable, judgeSelection, type Schedulable } from "./selection.ts";
import { accountOf, type GuardedPod } from "./subject.ts";

/**
 * A template is refused where its pods could be scheduled onto protected nodes and can't be steered: a DaemonSet that mutating left as
 * it was, and any template that is too large. Of other violations it warns: this is where people see them, as the pods' creator is a
 * controller. The nodes are those of the cache; nothing is read for a warning.
 */
export function decideTemplate(context: Context, groups: readonly Group[]): Result {
  const { request, object, view, facts, installation } = context;
  const workload = installation.workloads.byResource(request.resource.group, request.resource.resource);
  if (workload === undefined || !object.changed([specPath(workload)])) return allow();
  const { spec } = podTemplateOf(object.object, workload) ?? {};
  if (spec === undefined) return allow();
  const subject: GuardedPod = {
    request,
    name: `a pod of ${describeRequest(request)}`,
    namespace: request.namespace,
    account: accountOf(spec),
  };
  const isDaemonSet = workload.kind === "DaemonSet";
  const nodes = new PodNodes(spec);
  const judged = judgeTemplate(context, groups, nodes, spec, subject);
  if ("need" in judged) return judged;
  const pods: Schedulable = {
    spec,
    nodes,
    before: seenBefore(podTemplateOf(object.old, workload)?.spec),
    steering: isDaemonSet ? "done" : "later",
  };
  const unsteered = isBoundSpec(spec) ? { judgements: [] } : judgeReachable(context, groups, pods, subject);
  if ("need" in unsteered) return unsteered;
  if (unsteered.judgements.some((one) => verdictOf(one) === "deny") || judged.judgements.length === 0) {
    if (unsteered.judgements.length > 0)
      return decide(unsteered.judgements, subject, { refusedRegarding: refusedPod(request, object.object) });
  }
  if (judged.judgements.length > 0) return decide(judged.judgements, subject, { warnOnly: true });
  const blocking = blockingGroups(groups, subject, { facts });
  if ("need" in blocking) return blocking;
  // Pods that are steered never get there; a DaemonSet's pods are steered by its template alone.
  const unwarned = blocking.groups.filter(
    (group) => group.effectiveMode !== "Disable" && (!steers(group) || isDaemonSet),
  );
  const possible = judge(
    { claim: CLAIMS.possible, groups: reachableGroups(nodes, unwarned, view), nodes: [] },
    subject,
    facts,
  );
  return "need" in possible ? possible : decide(possible.judgements, subject, { warnOnly: true });
}

function judgeTemplate(
  context: Context,
  groups: readonly Group[],
  nodes: PodNodes,
  spec: JsonObject,
  subject: GuardedPod,
): ClaimJudgements {
  const name = stringAt(spec, "nodeName") ?? "";
  const violations = (judgements: readonly Judgement[]) => ({
    judgements: judgements.filter(({ pod }) => pod?.by === undefined),
  });
  if (name === "") {
    const judged = judgeSelection(context, groups, nodes, subject);
    return "need" in judged ? judged : violations(judged.judgements);
  }
  const counted = membership(context.view.get("nodes", "", name) ?? "unknown", groups, context.now);
  // Who will assign it is not known yet.
  const claim = { ...CLAIMS.assign, actor: "never" as const };
  const judged = judge({ claim, nodes: [name], ...counted }, subject, context.facts);
  return "need" in judged ? judged : violations(judged.judgements);
}
