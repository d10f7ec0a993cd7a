import type { Result } from "../../core/decision/decision.ts";
import type { Installation } from "../../core/installation/installation.ts";
import { stringAt } from "../../core/json.ts";
import type { Context, Evaluator } from "../../core/module/module.ts";
import { policyKey } from "../../core/policy/policy-ref.ts";
import { groupRef } from "./claims/report.ts";
import { validate } from "./claims/validate.ts";
import type { Group } from "./groups/group.ts";
import { Groups } from "./groups/groups.ts";
import type { GuardPolicy } from "./groups/policy.ts";
import { OVERRIDE_HOOK, recordGrant } from "./groups/record-grant.ts";
import { STEERING_HOOK } from "./hooks/hooks.ts";
import { steer } from "./steering/steer.ts";

/** Evaluates requests by the groups of all policies. */
export class GuardEvaluator implements Evaluator<GuardPolicy> {
  readonly groups: Groups;

  constructor(policies: readonly GuardPolicy[], installation: Installation) {
    this.groups = new Groups(policies, installation);
  }

  readonly mutate: NonNullable<Evaluator["mutate"]> = (context) => {
    if (context.hook === OVERRIDE_HOOK.name) return recordGrant(context);
    const groups = this.groups.at(context.view, context.now);
    return traced(context, groups, steer(context, groups));
  };
  readonly validate: NonNullable<Evaluator["validate"]> = (context) => {
    const groups = this.groups.at(context.view, context.now);
    return traced(context, groups, validate(context, groups));
  };
}

/** Reports every group in the trace: its findings, else why there are none. */
function traced(context: Context, groups: readonly Group[], result: Result): Result {
  const { trace, draft } = context;
  if (trace === undefined || "need" in result) return result;
  const edited = draft.edits.flatMap(({ finding }) => finding ?? []);
  const about = [...edited, ...result.findings];
  const failed = result.findings.find(({ outcome, policy }) => outcome === "failed" && policy === undefined);
  for (const group of groups) {
    const policy = groupRef(group);
    const found = about.some(
      (one) => one.policy !== undefined && policyKey(one.policy) === policyKey(policy),
    );
    const mode = `${group.effectiveMode}, ${group.because}`;
    if (found) trace({ policy, applies: "applies", why: mode });
    else if (failed !== undefined && group.effectiveMode !== "Disable")
      trace({ policy, applies: "failed", why: failed.message });
    else trace({ policy, applies: "not", why: whyNot(context, group) });
  }
  return result;
}

/** Why a group does not affect a request. */
function whyNot({ request, hook, draft }: Context, group: Group): string {
  if (group.effectiveMode === "Disable") return `mode Disable, ${group.because}`;
  const { resource, subResource } = request;
  if (resource.resource === "nodes") return "the labels that make its nodes stay as they are";
  const node = stringAt(draft.object, "target", "name") ?? stringAt(draft.object, "spec", "nodeName") ?? "";
  if (node !== "") return `node ${node} is not one of its nodes, or may be used`;
  if (subResource !== "") return "the pod does not run on its nodes, or may be accessed";
  return hook === STEERING_HOOK
    ? "the pod can't reach its nodes, may use them, or steering is off"
    : "the pod does not require its nodes, or may use them";
}
