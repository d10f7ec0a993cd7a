import { z } from "zod";
import type { CountedTally } from "../../core/effects.ts";
import { at, isObject, type Json, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { describeProblem, type Problem } from "../../core/problem.ts";
import { workloadsStatus } from "./survey-book.ts";

const count = (text: string) => z.int().min(0).optional().describe(text);

const moment = z.string().max(32);

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
  conditions: z
    .array(
      z.strictObject({
        type: z
          .string()
          .max(64)
          .describe(
            "Valid: whether usher can use all of the policy. Effective: whether it can mean any object, as namespaces were when this was written.",
          ),
        status: z.enum(["True", "False", "Unknown"]).describe("Whether it is so."),
        reason: z.string().max(64).describe("A word for machines."),
        message: z.string().max(4096).describe("A sentence for people."),
        lastTransitionTime: moment.describe("When the status of the condition last changed."),
        observedGeneration: z.int().optional().describe("The generation that it is about."),
      }),
    )
    .max(8)
    .optional()
    .describe("What is the matter with the policy."),
});

/** Longer texts help nobody in a table, and the schema has a limit. */
const MESSAGE_LENGTH = 1_024;

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
  const observed = generation === undefined ? {} : { observedGeneration: generation };
  const { matched = 0, applied = 0, skipped = 0, failed = 0 } = tally?.outcomes ?? {};
  const last = tally?.lastApplied === undefined ? stringAt(before, "lastApplied") : time(tally.lastApplied);
  return {
    ...observed,
    matched,
    applied,
    skipped,
    failed,
    ...(last === undefined ? {} : { lastApplied: last }),
    ...conflictsOf(tally, before),
    // Who has just begun to lead has not looked yet; what was found before stands until then.
    ...workloadsOf(workloads ?? before["workloads"]),
    conditions: [validity(problems), effectiveness(effect)].map((condition) => ({
      ...condition,
      lastTransitionTime: sinceWhen(condition, before, now),
      ...observed,
    })),
  };
}

interface Condition {
  readonly type: string;
  readonly status: "True" | "False";
  readonly reason: string;
  readonly message: string;
}

function validity(problems: readonly Problem[]): Condition {
  const errors = problems.filter(({ severity }) => severity === "error");
  const said = (errors.length > 0 ? errors : problems).map(describeProblem).join("; ");
  return {
    type: "Valid",
    status: errors.length === 0 ? "True" : "False",
    reason: errors.length > 0 ? "Invalid" : problems.length > 0 ? "Doubtful" : "Usable",
    message: said === "" ? "the policy is in use" : said.slice(0, MESSAGE_LENGTH),
  };
}

function effectiveness({ effective, reason, message }: Effect): Condition {
  return { type: "Effective", status: effective ? "True" : "False", reason, message };
}

function sinceWhen({ type, status }: Condition, before: JsonObject, now: number): string {
  const earlier = listAt(before, "conditions").find((one) => at(one, "type") === type);
  const since = at(earlier, "status") === status ? stringAt(earlier, "lastTransitionTime") : undefined;
  return since ?? time(now);
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
      field: field.slice(0, MESSAGE_LENGTH),
      message: message.slice(0, MESSAGE_LENGTH),
      time: time(when),
    })),
  };
}

function workloadsOf(found: Json | undefined): JsonObject {
  return isObject(found) ? { workloads: found } : {};
}

/** Seconds, as Kubernetes writes times. */
function time(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
