import { z } from "zod";
import { at, isObject, type JsonObject, listAt, stringAt } from "../../core/json.ts";
import { describeProblem, type Problem } from "../../core/problem.ts";

const moment = z.string().max(32);

const conditions = z
  .array(
    z.strictObject({
      type: z
        .string()
        .max(64)
        .describe(
          "Valid: whether usher can use all of it. Conflict: whether another rule says something else. Applied: whether all nodes could be written. Alone: whether no other system sets node labels here.",
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
  .describe("What is the matter with it.");

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
  conditions,
});

export const ownershipStatus = z.strictObject({ observedGeneration, conditions });

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
const MESSAGE_LENGTH = 1_024;

export function statusOfRule(state: RuleState, before: JsonObject, now: number): JsonObject {
  const { generation, conflicts, failing } = state;
  return {
    ...observed(generation),
    matchedNodes: state.matchedNodes,
    conflictCount: new Set(conflicts.map(({ key }) => key)).size,
    ...(conflicts.length === 0
      ? {}
      : { conflicts: conflicts.slice(0, LISTED).map((conflict) => ({ ...conflict })) }),
    ...(failing === undefined ? {} : { lastError: failing.error.slice(0, MESSAGE_LENGTH) }),
    conditions: [
      condition("Valid", validity(state), generation, before, now),
      condition("Conflict", conflictCondition(conflicts), generation, before, now),
      condition("Applied", appliedCondition(state), generation, before, now),
      ...(state.predecessor === undefined
        ? []
        : [
            condition(
              "Alone",
              { holds: false, reason: "Predecessor", message: state.predecessor },
              generation,
              before,
              now,
            ),
          ]),
    ],
  };
}

export function statusOfOwnership(
  state: Pick<RuleState, "generation" | "problems" | "inert">,
  before: JsonObject,
  now: number,
): JsonObject {
  return {
    ...observed(state.generation),
    conditions: [condition("Valid", validity(state), state.generation, before, now)],
  };
}

interface Said {
  readonly holds: boolean;
  readonly reason: string;
  readonly message: string;
}

function validity({ problems, inert }: Pick<RuleState, "problems" | "inert">): Said {
  const errors = problems.filter(({ severity }) => severity === "error");
  const text = (list: readonly Problem[]) => list.map(describeProblem).join("; ");
  if (errors.length > 0) return { holds: false, reason: "Invalid", message: text(errors) };
  if (inert !== undefined) return { holds: false, reason: "NotInForce", message: inert };
  if (problems.length > 0) return { holds: true, reason: "Doubtful", message: text(problems) };
  return { holds: true, reason: "Usable", message: ADMINISTRATORS };
}

/** Said where nothing else is to be said, because the kind's scope suggests otherwise. */
const ADMINISTRATORS =
  "in use; it acts on all nodes of the cluster, so only administrators should be allowed to write such objects";

function conflictCondition(conflicts: readonly Conflict[]): Said {
  if (conflicts.length === 0)
    return { holds: false, reason: "None", message: "no other rule says something else" };
  const [first] = conflicts;
  const side = first?.wins === true ? "this rule wins" : "the other rule wins";
  return {
    holds: true,
    reason: "OtherRule",
    message: `${first?.key ?? ""}: rule ${first?.with ?? ""} says something else on ${first?.nodes ?? 0} nodes; ${side} (USHER-L01)`,
  };
}

function appliedCondition({ failing, inert, matchedNodes }: RuleState): Said {
  if (inert !== undefined) return { holds: false, reason: "NotInForce", message: inert };
  if (failing === undefined)
    return { holds: true, reason: "Written", message: `${matchedNodes} nodes are kept right` };
  const message = `${failing.nodes} nodes could not be written; they are tried again: ${failing.error}`;
  return { holds: false, reason: "WriteFailed", message };
}

function condition(
  type: string,
  { holds, reason, message }: Said,
  generation: number | undefined,
  before: JsonObject,
  now: number,
): JsonObject {
  const status = holds ? "True" : "False";
  const earlier = listAt(before, "conditions").find((one) => at(one, "type") === type);
  const since =
    isObject(earlier) && earlier["status"] === status ? stringAt(earlier, "lastTransitionTime") : undefined;
  return {
    type,
    status,
    reason,
    message: message.slice(0, MESSAGE_LENGTH),
    lastTransitionTime: since ?? time(now),
    ...observed(generation),
  };
}

function observed(generation: number | undefined): { observedGeneration?: number } {
  return generation === undefined ? {} : { observedGeneration: generation };
}

/** Seconds, as Kubernetes writes times. */
function time(ms: number): string {
  return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
}
