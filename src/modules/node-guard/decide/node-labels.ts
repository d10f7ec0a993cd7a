import type { NeedMore } from "../../../core/evaluate/decision.ts";
import { allow, type Result } from "../../../core/evaluate/decision.ts";
import { labelsOf, nameOf } from "../../../core/kubernetes/object.ts";
import { serviceAccountOf } from "../../../core/kubernetes/principals.ts";
import { matches } from "../../../core/kubernetes/selectors/label-selector.ts";
import type { Context } from "../../../core/module/module.ts";
import type { Group } from "../groups/group.ts";
import { authorizeActor } from "./authorize.ts";
import { actorSide } from "./judge.ts";
import type { Judgement } from "./judgement.ts";
import { isLifecycleIdentity } from "./node-lifecycle.ts";
import { decide } from "./report.ts";
import type { GuardedPod } from "./subject.ts";

/** A node that leaves a group by its labels, through `nodes` or `nodes/status`: the selector is evaluated before and after. */
export function decideNodeLabels(context: Context, groups: readonly Group[]): Result {
  const { request, object, facts } = context;
  const [before, after] = [request.oldObject, object.object];
  if (before === undefined || isLifecycleIdentity(request.userInfo.username)) return allow();
  const left = groups.filter(
    ({ labelSelector, protectNodeLabels }) =>
      protectNodeLabels &&
      matches(labelSelector, labelsOf(before)) &&
      !matches(labelSelector, labelsOf(after)),
  );
  const name = request.name === "" ? nameOf(before) : request.name;
  const subject: GuardedPod = { request, name: `node ${name}`, namespace: "", account: undefined };
  const judgements: Judgement[] = [];
  for (const group of left) {
    const by = isUsher(context) ? { by: undefined } : authorizeActor(group, request, facts);
    if ("need" in by) return by satisfies NeedMore;
    judgements.push({
      rule: "node-labels",
      code: "USHER-G09",
      refused: true,
      group,
      nodes: [name],
      actor: actorSide(subject, by.by),
    });
  }
  return decide(judgements, subject);
}

/** A rule of another module must not free a node through usher's own account, whatever the lists say. */
function isUsher({ request, installation }: Context): boolean {
  return serviceAccountOf(request.userInfo.username)?.namespace === installation.namespace;
}
