import { z } from "zod";
import type { CountedTally } from "../../../core/decision/tally.ts";
import { isObject, type Json, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import {
  CONDITION_LENGTH,
  conditionOf,
  conditions,
  moment,
  type ObservedCondition,
  observed,
  timeOf,
  validity,
} from "../../../core/policy/condition.ts";
import type { Problem } from "../../../core/policy/problem.ts";
import { workloadsStatus } from "../drift/drift-counts.ts";

const count = (text: string) => z.int().min(0).optional().describe(text);

/** The status of a policy. Counts are sums over all replicas, including those that are gone. */
export const policyStatus = z.strictObject({
  observedGeneration: z.int().optional().describe("The generation that was last reconciled."),
  matched: count("Requests whose object the policy selected."),
  applied: count("Requests whose object the policy changed."),
  skipped: count(
    "Requests in which a part of the policy was not applied because of a conflict with the object or with another policy.",
  ),
  failed: count("Requests in which the policy could not be evaluated."),
  lastApplied: moment.optional().describe("When the policy last changed an object."),
  conflicts: z
    .array(
      z.strictObject({
        object: z.string().max(600).describe("The kind, namespace and name of the object."),
        field: z.string().max(1_024).describe("The field with the conflict."),
        message: z.string().max(1_024).describe("The values in conflict, and which one was kept."),
        time: moment.describe("When the conflict was last seen."),
      }),
    )
    .max(5)
    .optional()
    .describe("Recent conflicts of as many namespaces as possible, the latest first."),
  nodes: count("Nodes that meet all requirements of the policy. Absent where it has none about nodes."),
  workloads: workloadsStatus
    .optional()
    .describe("Drift of stored workloads from the policy, as of the last scan."),
  conditions: conditions(
    "Latest observations of the policy's state. Valid: whether all of the policy is valid. Effective: whether it can select any object and leaves it any node, given the namespaces and nodes at the time, and whether the API server asks usher.",
  ),
});

/** Whether a policy can select any object. */
export interface Effect {
  readonly effective: boolean;
  readonly reason: string;
  readonly message: string;
}

/** The desired status of a policy. `before` is the current one: unchanged conditions keep their time. */
export function statusOf(
  policy: {
    readonly generation: number | undefined;
    readonly problems: readonly Problem[];
    readonly effect: Effect;
    readonly nodes?: number | undefined;
  },
  tally: CountedTally | undefined,
  before: JsonObject,
  now: number,
  workloads: JsonObject | undefined = undefined,
): JsonObject {
  const { generation, problems, effect, nodes } = policy;
  // A new leader has not collected tallies yet; the last counts stay until then.
  const counted = (outcome: "matched" | "applied" | "skipped" | "failed"): number =>
    tally === undefined ? Number(before[outcome] ?? 0) : (tally.outcomes[outcome] ?? 0);
  const last = tally?.lastApplied === undefined ? stringAt(before, "lastApplied") : timeOf(tally.lastApplied);
  return {
    ...observed(generation),
    matched: counted("matched"),
    applied: counted("applied"),
    skipped: counted("skipped"),
    failed: counted("failed"),
    ...(nodes === undefined ? {} : { nodes }),
    ...(last === undefined ? {} : { lastApplied: last }),
    ...conflictsOf(tally, before),
    // A new leader has not scanned yet; the last counts stay until then.
    ...workloadsOf(workloads ?? before["workloads"]),
    conditions: [validity(problems, "the policy is in use"), effectiveness(effect)].map((one) =>
      conditionOf(one, generation, before, now),
    ),
  };
}

function effectiveness({ effective, reason, message }: Effect): ObservedCondition {
  return { type: "Effective", holds: effective, reason, message };
}

/** A new leader has no tallies yet; known conflicts stay until then. */
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
