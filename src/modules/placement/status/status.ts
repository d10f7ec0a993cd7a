import { z } from "zod";
import type { CountedTally } from "../../../core/evaluate/effects.ts";
import { isObject, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import {
  CONDITION_LENGTH,
  conditionOf,
  conditions,
  moment,
  observed,
  type Said,
  timeOf,
} from "../../../core/policy/condition.ts";
import { describeProblem, type Problem } from "../../../core/policy/problem.ts";
import { workloadsStatus } from "../drift/drift-counts.ts";

const count = (text: string) => z.int().min(0).optional().describe(text);

/** What usher says of a policy. Counts are of all replicas since each of them started, so they may fall. */
export const policyStatus = z.strictObject({
  observedGeneration: z.int().optional().describe("The generation of the policy that this is about."),
  matched: count("Requests in which the policy wanted the object."),
  applied: count("Requests in which it changed the object."),
  skipped: count(
    "Requests in which a part was left out because the object, or a policy before it, says otherwise.",
  ),
  failed: count("Requests in which it could not be said whether the policy wants the object."),
  lastApplied: moment.optional().describe("When it last changed an object."),
  conflicts: z
    .array(
      z.strictObject({
        object: z.string().max(600).describe("The kind, namespace and name of the object."),
        field: z.string().max(1_024).describe("The field of it."),
        message: z.string().max(1_024).describe("Who says what there, and what was done."),
        time: moment.describe("When it was last so."),
      }),
    )
    .max(5)
    .optional()
    .describe("Where the policy could not have its way: the last few, the latest first."),
  workloads: workloadsStatus
    .optional()
    .describe("How stored workloads stand to the policy, as they were last looked at."),
  conditions: conditions(
    "Valid: whether usher can use all of the policy. Effective: whether it can mean any object, as namespaces were when this was written.",
  ),
});

/** Whether a policy can mean any object, and in which words. */
export interface Effect {
  readonly effective: boolean;
  readonly reason: string;
  readonly message: string;
}

/** The status that a policy should have. `before` is the one it has: what did not change keeps its time. */
export function statusOf(
  policy: {
    readonly generation: number | undefined;
    readonly problems: readonly Problem[];
    readonly effect: Effect;
  },
  tally: CountedTally | undefined,
  before: JsonObject,
  now: number,
  workloads: JsonObject | undefined = undefined,
): JsonObject {
  const { generation, problems, effect } = policy;
  const { matched = 0, applied = 0, skipped = 0, failed = 0 } = tally?.outcomes ?? {};
  const last = tally?.lastApplied === undefined ? stringAt(before, "lastApplied") : timeOf(tally.lastApplied);
  return {
    ...observed(generation),
    matched,
    applied,
    skipped,
    failed,
    ...(last === undefined ? {} : { lastApplied: last }),
    ...conflictsOf(tally, before),
    // Who has just begun to lead has not looked yet; what was found before stands until then.
    ...workloadsOf(workloads ?? before["workloads"]),
    conditions: [validity(problems), effectiveness(effect)].map((one) =>
      conditionOf(one, generation, before, now),
    ),
  };
}

function validity(problems: readonly Problem[]): Said {
  const errors = problems.filter(({ severity }) => severity === "error");
  const said = (errors.length > 0 ? errors : problems).map(describeProblem).join("; ");
  return {
    type: "Valid",
    holds: errors.length === 0,
    reason: errors.length > 0 ? "Invalid" : problems.length > 0 ? "Doubtful" : "Usable",
    message: said === "" ? "the policy is in use" : said,
  };
}

function effectiveness({ effective, reason, message }: Effect): Said {
  return { type: "Effective", holds: effective, reason, message };
}

/** A new leader has heard of none yet; what was known before stands until then. */
function conflictsOf(tally: CountedTally | undefined, before: JsonObject): JsonObject {
  if (tally?.conflicts === undefined) {
    const known = listAt(before, "conflicts");
    return known.length === 0 ? {} : { conflicts: known };
  }
  return {
    conflicts: tally.conflicts.map(({ object, field, message, at: when }) => ({
      object: object.slice(0, 600),
      field: field.slice(0, CONDITION_LENGTH),
      message: message.slice(0, CONDITION_LENGTH),
      time: timeOf(when),
    })),
  };
}

function workloadsOf(found: Json | undefined): JsonObject {
  return isObject(found) ? { workloads: found } : {};
}
