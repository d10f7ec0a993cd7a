import type { Installation } from "../../core/module/installation.ts";
import type { Evaluator } from "../../core/module/module.ts";
import { validate } from "./decide/validate.ts";
import { Groups } from "./groups/groups.ts";
import { OVERRIDE_HOOK, recordGrant } from "./overrides/record-grant.ts";
import type { GuardPolicy } from "./policy/guard-policy.ts";
import { steer } from "./steering/steer.ts";

/** Judges requests by the groups of all policies. */
export class GuardEvaluator implements Evaluator<GuardPolicy> {
  readonly groups: Groups;

  constructor(policies: readonly GuardPolicy[], installation: Installation) {
    this.groups = new Groups(policies, installation);
  }

  readonly mutate: NonNullable<Evaluator["mutate"]> = (context) =>
    context.hook === OVERRIDE_HOOK.name
      ? recordGrant(context)
      : steer(context, this.groups.at(context.view, context.now));
  readonly validate: NonNullable<Evaluator["validate"]> = (context) =>
    validate(context, this.groups.at(context.view, context.now));
}
