import { z } from "zod";
import { at, type JsonObject, listAt, stringAt } from "../json.ts";

/** Longer texts help nobody in a table, and the schema has a limit. */
export const CONDITION_LENGTH = 1_024;

/** When something was, as Kubernetes writes it. */
export const moment = z.string().max(32);

/** The schema of `status.conditions`; `types` says of each type what it tells. */
export function conditions(types: string) {
  return z
    .array(
      z.strictObject({
        type: z.string().max(64).describe(types),
        status: z.enum(["True", "False", "Unknown"]).describe("Whether it is so."),
        reason: z.string().max(64).describe("A word for machines."),
        message: z.string().max(4096).describe("A sentence for people."),
        lastTransitionTime: moment.describe("When the status of the condition last changed."),
        observedGeneration: z.int().optional().describe("The generation that it is about."),
      }),
    )
    .max(8)
    .optional()
    .describe("Latest observations of the object's state.");
}

/** What is said under one type. */
export interface Said {
  readonly type: string;
  readonly holds: boolean;
  /** CamelCase, for machines. */
  readonly reason: string;
  readonly message: string;
}

/** A condition as it should be. `before` is the status that the object has: what did not change keeps its time. */
export function conditionOf(
  { type, holds, reason, message }: Said,
  generation: number | undefined,
  before: JsonObject,
  now: number,
): JsonObject {
  const status = holds ? "True" : "False";
  const earlier = listAt(before, "conditions").find((one) => at(one, "type") === type);
  const since = at(earlier, "status") === status ? stringAt(earlier, "lastTransitionTime") : undefined;
  return {
    type,
    status,
    reason,
    message: message.slice(0, CONDITION_LENGTH),
    lastTransitionTime: since ?? timeOf(now),
    ...observed(generation),
  };
}

export function observed(generation: number | undefined): { observedGeneration?: number } {
  return generation === undefined ? {} : { observedGeneration: generation };
}

/** Seconds, as Kubernetes writes times. */
export function timeOf(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
