import { allow, type Result } from "../../../core/evaluate/decision.ts";
import { describeRequest } from "../../../core/evaluate/request.ts";
import { stringAt } from "../../../core/json.ts";
import { podTemplateOf, specPath } from "../../../core/kubernetes/workloads.ts";
import type { Context } from "../../../core/module/module.ts";
import { CLAIMS } from "../claims/claim.ts";
import { possibleGroups } from "../claims/selection.ts";
import type { Group } from "../groups/group.ts";
import { judge, membership } from "./judge.ts";
import type { Judgement } from "./judgement.ts";
import { decide } from "./report.ts";
import { blockingGroups, judgeSelection } from "./selection.ts";
import { accountOf, type Subject } from "./subject.ts";

/**
 * Warns of a template whose pods would be refused. Only warnings: this is where people see them, as the pods' creator is a controller.
 * The nodes are those of the cache; nothing is read for a warning.
 */
export function warnOfTemplate(context: Context, groups: readonly Group[]): Result {
  const { request, object, view, facts, installation } = context;
  const workload = installation.workloads.byResource(request.resource.group, request.resource.resource);
  if (workload === undefined || !object.changed([specPath(workload)])) return allow();
  const { spec } = podTemplateOf(object.object, workload) ?? {};
  if (spec === undefined) return allow();
  const { namespace } = request;
  const subject: Subject = {
    request,
    name: `a pod of ${describeRequest(request)}`,
    namespace,
    account: accountOf(spec),
  };
  const judged = judgeTemplate(context, groups, spec, subject);
  if ("need" in judged) return judged;
  if (judged.judgements.length > 0) return decide(judged.judgements, subject, { warnOnly: true });
  const blocking = blockingGroups(groups, subject, { facts });
  if ("need" in blocking) return blocking;
  // Pods that are steered never get there; a DaemonSet's pods are steered by its template alone.
  const unsteered = blocking.groups.filter(
    ({ steering, effectiveMode }) =>
      effectiveMode !== "Disable" && (steering === "Off" || workload.kind === "DaemonSet"),
  );
  const possible = judge(
    { claim: CLAIMS.possible, groups: possibleGroups(spec, unsteered, view), nodes: [] },
    subject,
    facts,
  );
  return "need" in possible ? possible : decide(possible.judgements, subject, { warnOnly: true });
}

function judgeTemplate(
  context: Context,
  groups: readonly Group[],
  spec: NonNullable<ReturnType<typeof podTemplateOf>>["spec"],
  subject: Subject,
): { readonly judgements: readonly Judgement[] } | Extract<Result, { readonly need: unknown }> {
  const name = stringAt(spec, "nodeName") ?? "";
  const violations = (judgements: readonly Judgement[]) => ({
    judgements: judgements.filter(({ pod }) => pod?.by === undefined),
  });
  if (name === "") {
    const judged = judgeSelection(context, groups, spec, subject);
    return "need" in judged ? judged : violations(judged.judgements);
  }
  const counted = membership(context.view.get("nodes", "", name) ?? "unknown", groups, context.now);
  // Who will assign it is not known yet.
  const claim = { ...CLAIMS.assign, actor: "never" as const };
  const judged = judge({ claim, nodes: [name], ...counted }, subject, context.facts);
  return "need" in judged ? judged : violations(judged.judgements);
}
