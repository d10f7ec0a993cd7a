import { z } from "zod";
import type { CountedTally } from "../../core/effects.ts";
import { at, isObject, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { describeProblem, type Problem } from "../../core/problem.ts";

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
  conditions: z
    .array(
      z.strictObject({
        type: z.string().max(64).describe("Valid: whether usher can use all of the policy."),
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

/** The status that a policy should have. `before` is the one it has: what did not change keeps its time. */
export function statusOf(
  policy: { readonly generation: number | undefined; readonly problems: readonly Problem[] },
  tally: CountedTally | undefined,
  before: JsonObject,
  now: number,
): JsonObject {
  const { generation, problems } = policy;
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
    conditions: [{ ...validity(problems, before, now), ...observed }],
  };
}

function validity(problems: readonly Problem[], before: JsonObject, now: number): JsonObject {
  const errors = problems.filter(({ severity }) => severity === "error");
  const said = (errors.length > 0 ? errors : problems).map(describeProblem).join("; ");
  const status = errors.length === 0 ? "True" : "False";
  const earlier = listAt(before, "conditions").find((one) => at(one, "type") === "Valid");
  const since =
    isObject(earlier) && earlier["status"] === status ? stringAt(earlier, "lastTransitionTime") : undefined;
  return {
    type: "Valid",
    status,
    reason: errors.length > 0 ? "Invalid" : problems.length > 0 ? "Doubtful" : "Usable",
    message: said === "" ? "the policy is in use" : said.slice(0, MESSAGE_LENGTH),
    lastTransitionTime: since ?? time(now),
  };
}

/** Seconds, as Kubernetes writes times. */
function time(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
