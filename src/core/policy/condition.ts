import { z } from "zod";
import { at, type JsonObject, listAt, stringAt } from "../json.ts";
import { describeProblem, type Problem } from "./problem.ts";

/** Longer messages do not fit a table, and the schema has a limit. */
export const CONDITION_LENGTH = 1_024;

/** A time as Kubernetes writes it. */
export const moment = z.string().max(32);

/**
 * The schema of `status.conditions`; `types` describes the existing types. In a shared status each writer applies its
 * own types, and those of others stay.
 */
export function conditions(types: string, { shared = false } = {}) {
  const all = z
    .array(
      z.strictObject({
        type: z.string().max(64).describe(types),
        status: z
          .enum(["True", "False", "Unknown"])
          .describe("Status of the condition, one of True, False, Unknown."),
        reason: z.string().max(64).describe("Reason for the condition's last transition, in CamelCase."),
        message: z.string().max(4096).describe("Human readable details about the last transition."),
        lastTransitionTime: moment.describe(
          "Last time that the condition changed from one status to another.",
        ),
        observedGeneration: z
          .int()
          .optional()
          .describe("The .metadata.generation that the condition was set for."),
      }),
    )
    .max(shared ? 16 : 8)
    .optional()
    .describe("Latest observations of the policy's state.");
  return shared ? all.meta({ "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["type"] }) : all;
}

/** A condition before it gets its times. */
export interface ObservedCondition {
  readonly type: string;
  readonly holds: boolean;
  /** CamelCase, for machines. */
  readonly reason: string;
  readonly message: string;
}

/** The condition `Valid` of a policy with these problems; `message` is for a policy without problems. */
export function validity(problems: readonly Problem[], message: string): ObservedCondition {
  const errors = problems.filter(({ severity }) => severity === "error");
  const text = (errors.length > 0 ? errors : problems).map(describeProblem).join("; ");
  return {
    type: "Valid",
    holds: errors.length === 0,
    reason: errors.length > 0 ? "Invalid" : problems.length > 0 ? "ValidWithWarnings" : "Usable",
    message: text === "" ? message : text,
  };
}

/** A condition for the status of an object. `before` is its current status: an unchanged condition keeps its time. */
export function conditionOf(
  { type, holds, reason, message }: ObservedCondition,
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
