import { allow, type Result } from "../../../core/decision/decision.ts";
import { describeRequest } from "../../../core/decision/request.ts";
import { type JsonObject, stringAt } from "../../../core/json.ts";
import { isBoundSpec } from "../../../core/kubernetes/pod-state.ts";
import { podTemplateOf, specPath } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import { type Group, steers } from "../groups/group.ts";
import { refusedPod } from "./assign.ts";
import { CLAIMS } from "./claim.ts";
import {
  accountOf,
  blockingGroups,
  type EvaluatedClaims,
  evaluateClaim,
  type GuardedPod,
  isUnauthorized,
  verdictOf,
} from "./evaluate-claim.ts";
import { PodNodes, seenBefore } from "./pod-nodes.ts";
import { evaluateReachable, reachableGroups, type Schedulable } from "./reachable.ts";
import { membership } from "./read.ts";
import { decide } from "./report.ts";
import { evaluateSelection } from "./selection.ts";

/**
 * A template is refused if its pods could be scheduled onto protected nodes and can't be steered: a DaemonSet that
 * mutating left unchanged, and any template that is too large. For other violations it warns: users see them here,
 * because a controller creates the pods. The nodes are those of the cache; nothing is read for a warning.
 */
export function decideTemplate(context: Context, groups: readonly Group[]): Result {
  const { request, draft, view, facts, installation } = context;
  const workload = installation.workloads.byResource(request.resource.group, request.resource.resource);
  if (workload === undefined || !draft.changed([specPath(workload)])) return allow();
  const { spec } = podTemplateOf(draft.object, workload) ?? {};
  if (spec === undefined) return allow();
  const subject: GuardedPod = {
    request,
    name: `a pod of ${describeRequest(request)}`,
    namespace: request.namespace,
    account: accountOf(spec),
  };
  const isDaemonSet = workload.kind === "DaemonSet";
  const nodes = new PodNodes(spec);
  const claims = templateClaims(context, groups, nodes, spec, subject);
  if ("need" in claims) return claims;
  const pods: Schedulable = {
    spec,
    nodes,
    before: seenBefore(podTemplateOf(draft.old, workload)?.spec),
    steering: isDaemonSet ? "done" : "later",
  };
  const unsteered = isBoundSpec(spec) ? { evaluated: [] } : evaluateReachable(context, groups, pods, subject);
  if ("need" in unsteered) return unsteered;
  if (unsteered.evaluated.some((one) => verdictOf(one) === "deny") || claims.evaluated.length === 0) {
    if (unsteered.evaluated.length > 0)
      return decide(unsteered.evaluated, subject, { refusedRegarding: refusedPod(request, draft.object) });
  }
  if (claims.evaluated.length > 0) return decide(claims.evaluated, subject, { warnOnly: true });
  const blocking = blockingGroups(groups, CLAIMS.exclusive, subject, facts);
  if ("need" in blocking) return blocking;
  // Pods that are steered never get there; a DaemonSet's pods are steered by its template alone.
  const unwarned = blocking.groups.filter(
    (group) => group.effectiveMode !== "Disable" && (!steers(group) || isDaemonSet),
  );
  const possible = evaluateClaim(
    { claim: CLAIMS.possible, groups: reachableGroups(nodes, unwarned, view), nodes: [] },
    subject,
    facts,
  );
  return "need" in possible ? possible : decide(possible.evaluated, subject, { warnOnly: true });
}

function templateClaims(
  context: Context,
  groups: readonly Group[],
  nodes: PodNodes,
  spec: JsonObject,
  subject: GuardedPod,
): EvaluatedClaims {
  const name = stringAt(spec, "nodeName") ?? "";
  const found =
    name === ""
      ? evaluateSelection(context, groups, nodes, subject)
      : evaluateClaim(
          {
            // The assigner is not known yet.
            claim: { ...CLAIMS.assign, actor: "never" },
            nodes: [name],
            ...membership(context.view.get("nodes", "", name) ?? "unknown", groups, context.now),
          },
          subject,
          context.facts,
        );
  return "need" in found ? found : { evaluated: found.evaluated.filter(({ pod }) => isUnauthorized(pod)) };
}
