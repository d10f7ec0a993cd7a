import { z } from "zod";
import type { JsonObject } from "../../../core/json.ts";
import {
  CONDITION_LENGTH,
  conditionOf,
  conditions,
  type ObservedCondition,
  observed,
  validity,
} from "../../../core/policy/condition.ts";
import type { Problem } from "../../../core/policy/problem.ts";
import type { RuleConflict } from "../rules/conflicts.ts";

const conditionList = conditions(
  "Latest observations of the object's state. Valid: whether all of it is valid. Conflict: whether another rule sets a different value. Applied: whether all nodes could be written. Alone: whether no other system sets node labels.",
);

const observedGeneration = z.int().optional().describe("The generation that was last reconciled.");

/** The status of a Labels object. */
export const ruleStatus = z.strictObject({
  observedGeneration,
  matchedNodes: z.int().min(0).optional().describe("Number of nodes that the rule matches."),
  conflictCount: z
    .int()
    .min(0)
    .optional()
    .describe("Number of keys that another rule sets to a different value."),
  conflicts: z
    .array(
      z.strictObject({
        key: z.string().max(512).describe("The label, annotation or taint that both rules set."),
        with: z.string().max(512).describe("The other rule, as namespace/name."),
        wins: z.boolean().describe("Whether the value of this rule applies."),
        nodes: z.int().min(0).describe("Number of nodes with the conflict."),
      }),
    )
    .max(64)
    .optional()
    .describe("Conflicts with other rules, those on the most nodes first."),
  lastError: z
    .string()
    .max(4096)
    .optional()
    .describe("Why a node could not be written, of the first that failed."),
  conditions: conditionList,
});

export const ownershipStatus = z.strictObject({ observedGeneration, conditions: conditionList });

/** The observations of a rule. */
export interface RuleState {
  readonly generation: number | undefined;
  readonly problems: readonly Problem[];
  /** Why it has no effect at all. */
  readonly inert: string | undefined;
  readonly matchedNodes: number;
  readonly conflicts: readonly RuleConflict[];
  /** Nodes that could not be written, and why the first of them could not. */
  readonly failing: { readonly nodes: number; readonly error: string } | undefined;
  /** Another system that sets labels of nodes in this cluster. */
  readonly predecessor: string | undefined;
}

/** Longer lists are of no use to a reader. */
const LISTED = 16;

/** The conflicts that the status lists. */
export function listed(conflicts: readonly RuleConflict[]): readonly RuleConflict[] {
  return conflicts.slice(0, LISTED);
}

export function statusOfRule(state: RuleState, before: JsonObject, now: number): JsonObject {
  const { generation, conflicts, failing } = state;
  return {
    ...observed(generation),
    matchedNodes: state.matchedNodes,
    conflictCount: new Set(conflicts.map(({ key }) => key)).size,
    ...(conflicts.length === 0 ? {} : { conflicts: listed(conflicts).map((conflict) => ({ ...conflict })) }),
    ...(failing === undefined ? {} : { lastError: failing.error.slice(0, CONDITION_LENGTH) }),
    conditions: [
      inForce(state),
      conflictCondition(conflicts),
      appliedCondition(state),
      ...(state.predecessor === undefined ? [] : [aloneCondition(state.predecessor)]),
    ].map((one) => conditionOf(one, generation, before, now)),
  };
}

export function statusOfOwnership(
  state: Pick<RuleState, "generation" | "problems" | "inert">,
  before: JsonObject,
  now: number,
): JsonObject {
  return {
    ...observed(state.generation),
    conditions: [conditionOf(inForce(state), state.generation, before, now)],
  };
}

/** A rule that counts for nothing is not in force, unless it is invalid. */
function inForce({ problems, inert }: Pick<RuleState, "problems" | "inert">): ObservedCondition {
  const valid = validity(problems, ADMINISTRATORS);
  if (inert === undefined || !valid.holds) return valid;
  return { type: "Valid", holds: false, reason: "NotInForce", message: inert };
}

/** Shown if there are no problems, because the kind is namespaced. */
const ADMINISTRATORS =
  "in use; applies to all nodes of the cluster, so only administrators should be allowed to write such objects";

function conflictCondition(conflicts: readonly RuleConflict[]): ObservedCondition {
  if (conflicts.length === 0)
    return {
      type: "Conflict",
      holds: false,
      reason: "None",
      message: "no other rule sets a different value",
    };
  const [first] = conflicts;
  const side = first?.wins === true ? "this rule wins" : "the other rule wins";
  return {
    type: "Conflict",
    holds: true,
    reason: "OtherRule",
    message: `${first?.key ?? ""}: rule ${first?.with ?? ""} sets a different value on ${first?.nodes ?? 0} nodes; ${side} (USHER-L01)`,
  };
}

function appliedCondition({ failing, inert, matchedNodes }: RuleState): ObservedCondition {
  if (inert !== undefined) return { type: "Applied", holds: false, reason: "NotInForce", message: inert };
  if (failing === undefined)
    return {
      type: "Applied",
      holds: true,
      reason: "Written",
      message: `applied to ${matchedNodes} nodes`,
    };
  const message = `failed to write ${failing.nodes} nodes, retrying: ${failing.error}`;
  return { type: "Applied", holds: false, reason: "WriteFailed", message };
}

function aloneCondition(message: string): ObservedCondition {
  return { type: "Alone", holds: false, reason: "Predecessor", message };
}
