import { z } from "zod";
import type { JsonObject } from "../../../core/json.ts";
import {
  CONDITION_LENGTH,
  conditionOf,
  conditions,
  observed,
  type Said,
} from "../../../core/policy/condition.ts";
import { describeProblem, type Problem } from "../../../core/policy/problem.ts";

const said = conditions(
  "Valid: whether usher can use all of it. Conflict: whether another rule says something else. Applied: whether all nodes could be written. Alone: whether no other system sets node labels here.",
);

const observedGeneration = z.int().optional().describe("The generation that this is about.");

/** What usher says of a rule. */
export const ruleStatus = z.strictObject({
  observedGeneration,
  matchedNodes: z.int().min(0).optional().describe("Nodes that it means."),
  conflictCount: z.int().min(0).optional().describe("Keys about which another rule says something else."),
  conflicts: z
    .array(
      z.strictObject({
        key: z.string().max(512).describe("What both set."),
        with: z.string().max(512).describe("The other rule, as namespace/name."),
        wins: z.boolean().describe("Whether this rule's value is the one that nodes have."),
        nodes: z.int().min(0).describe("On how many nodes."),
      }),
    )
    .max(64)
    .optional()
    .describe("What other rules say otherwise, the first of them."),
  lastError: z.string().max(4096).optional().describe("Why a node could not be written."),
  conditions: said,
});

export const ownershipStatus = z.strictObject({ observedGeneration, conditions: said });

export interface Conflict {
  readonly key: string;
  readonly with: string;
  readonly wins: boolean;
  readonly nodes: number;
}

/** What is known of a rule as it stands. */
export interface RuleState {
  readonly generation: number | undefined;
  readonly problems: readonly Problem[];
  /** Why it has no effect at all, whatever it says. */
  readonly inert: string | undefined;
  readonly matchedNodes: number;
  readonly conflicts: readonly Conflict[];
  /** Nodes that could not be written, and why the first of them could not. */
  readonly failing: { readonly nodes: number; readonly error: string } | undefined;
  /** Another system that sets labels of nodes here. */
  readonly predecessor: string | undefined;
}

/** Longer lists help nobody. */
const LISTED = 16;

/** Those that a status names. */
export function listed(conflicts: readonly Conflict[]): readonly Conflict[] {
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
      validity(state),
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
    conditions: [conditionOf(validity(state), state.generation, before, now)],
  };
}

function validity({ problems, inert }: Pick<RuleState, "problems" | "inert">): Said {
  const errors = problems.filter(({ severity }) => severity === "error");
  const text = (list: readonly Problem[]) => list.map(describeProblem).join("; ");
  if (errors.length > 0) return { type: "Valid", holds: false, reason: "Invalid", message: text(errors) };
  if (inert !== undefined) return { type: "Valid", holds: false, reason: "NotInForce", message: inert };
  if (problems.length > 0) return { type: "Valid", holds: true, reason: "Doubtful", message: text(problems) };
  return { type: "Valid", holds: true, reason: "Usable", message: ADMINISTRATORS };
}

/** Said where nothing else is to be said, because the kind's scope suggests otherwise. */
const ADMINISTRATORS =
  "in use; it acts on all nodes of the cluster, so only administrators should be allowed to write such objects";

function conflictCondition(conflicts: readonly Conflict[]): Said {
  if (conflicts.length === 0)
    return { type: "Conflict", holds: false, reason: "None", message: "no other rule says something else" };
  const [first] = conflicts;
  const side = first?.wins === true ? "this rule wins" : "the other rule wins";
  return {
    type: "Conflict",
    holds: true,
    reason: "OtherRule",
    message: `${first?.key ?? ""}: rule ${first?.with ?? ""} says something else on ${first?.nodes ?? 0} nodes; ${side} (USHER-L01)`,
  };
}

function appliedCondition({ failing, inert, matchedNodes }: RuleState): Said {
  if (inert !== undefined) return { type: "Applied", holds: false, reason: "NotInForce", message: inert };
  if (failing === undefined)
    return {
      type: "Applied",
      holds: true,
      reason: "Written",
      message: `${matchedNodes} nodes are kept right`,
    };
  const message = `${failing.nodes} nodes could not be written; they are tried again: ${failing.error}`;
  return { type: "Applied", holds: false, reason: "WriteFailed", message };
}

function aloneCondition(message: string): Said {
  return { type: "Alone", holds: false, reason: "Predecessor", message };
}
