import { z } from "zod";
import type { JsonObject } from "../../../core/json.ts";
import {
  conditionOf,
  conditions,
  type ObservedCondition,
  observed,
  validity,
} from "../../../core/policy/condition.ts";
import type { Problem } from "../../../core/policy/problem.ts";
import { CONTROL_PLANE, type Group, MODES } from "../groups/group.ts";
import { type Agreement, agreement, type Groups } from "../groups/groups.ts";
import { CLUSTER } from "../groups/policy.ts";

const count = (description: string) => z.int().min(0).describe(description);

export const policyStatus = z.strictObject({
  observedGeneration: z.int().optional().describe("The generation that was last reconciled."),
  groups: z
    .array(
      z.strictObject({
        name: z.string().max(63).describe("The name of the group."),
        mode: z.enum(MODES).describe("The mode that the sources say."),
        effectiveMode: z.enum(MODES).describe("The mode that counts for requests."),
        because: z.string().max(256).describe("Why the effective mode is what it is."),
        nodes: count("Number of nodes in the group."),
        violations: count("Number of running pods on these nodes that are not authorised; none is evicted."),
        fallback: z.boolean().describe("Whether the fallback of the group is in force."),
      }),
    )
    .max(32)
    .optional()
    .describe("All groups of the cluster as they count now."),
  conditions: conditions(
    "Valid: whether all of the policy is valid. Consistent: whether the mode of ControlPlane goes with mastersSchedulable. TaintManaged: whether usher sets the taint of control-plane nodes. NoViolations: whether no running pod is unauthorised. NewNodesGuarded: whether nodes that join a group while usher does not answer are guarded.",
  ),
});

/** Observations of the cluster. */
export interface PolicyState {
  readonly name: string;
  readonly generation: number | undefined;
  readonly problems: readonly Problem[];
  readonly groups: Groups;
  readonly reported: readonly (Group & {
    readonly nodes: number;
    readonly violations: number;
    readonly fallback: boolean;
    /** Why nodes that join while usher does not answer are not guarded. */
    readonly unguarded: string | undefined;
  })[];
  readonly managesTaint: boolean;
}

export function statusOfPolicy(state: PolicyState, before: JsonObject, now: number): JsonObject {
  const { generation, reported } = state;
  const counted = state.name === CLUSTER;
  const observations = counted
    ? [
        validity(state.problems, "in use"),
        consistency(state),
        taint(state),
        violations(state),
        newNodes(state),
      ]
    : [notCounted()];
  return {
    ...observed(generation),
    ...(counted
      ? {
          groups: reported.map(
            ({ name, mode, effectiveMode, because, nodes, violations: found, fallback }) => ({
              name,
              mode,
              effectiveMode,
              because,
              nodes,
              violations: found,
              fallback,
            }),
          ),
        }
      : {}),
    conditions: observations.map((one) => conditionOf(one, generation, before, now)),
  };
}

function notCounted(): ObservedCondition {
  const message = `has no effect: only the object named ${CLUSTER} counts`;
  return { type: "Valid", holds: false, reason: "NotInForce", message };
}

function consistency({ groups, reported }: PolicyState): ObservedCondition {
  const mode = reported.find(({ name }) => name === CONTROL_PLANE)?.mode ?? "Disable";
  const found: Agreement = agreement(mode, groups.consistency, groups.mastersSchedulable);
  return found.consistent
    ? { type: "Consistent", holds: true, reason: "Agree", message: found.message }
    : {
        type: "Consistent",
        holds: false,
        reason: "Contradiction",
        message: `${found.message}: change one of them; until then the mode is Inform at most`,
      };
}

function taint({ managesTaint, groups }: PolicyState): ObservedCondition {
  if (!managesTaint)
    return {
      type: "TaintManaged",
      holds: false,
      reason: "Unmanaged",
      message:
        "usher leaves taints of control-plane nodes alone: spec.modules.node-guard.manageTaint is not set",
    };
  const { mastersSchedulable } = groups;
  return mastersSchedulable === undefined
    ? {
        type: "TaintManaged",
        holds: false,
        reason: "NoScheduler",
        message: "there is no Scheduler named cluster: taints stay as they are",
      }
    : {
        type: "TaintManaged",
        holds: true,
        reason: "Managed",
        message: `control-plane nodes ${mastersSchedulable ? "do not have" : "have"} the taint, as mastersSchedulable is ${mastersSchedulable}`,
      };
}

function violations({ reported }: PolicyState): ObservedCondition {
  const found = reported.filter((group) => group.violations > 0);
  const message = found.map((group) => `${group.violations} on nodes of ${group.name}`).join(", ");
  return found.length === 0
    ? { type: "NoViolations", holds: true, reason: "None", message: "all running pods are authorised" }
    : {
        type: "NoViolations",
        holds: false,
        reason: "RunningPods",
        message: `running pods that are not authorised: ${message}; none is evicted`,
      };
}

function newNodes({ reported }: PolicyState): ObservedCondition {
  const type = "NewNodesGuarded";
  const found = reported.flatMap(({ name, unguarded }) =>
    unguarded === undefined ? [] : [`${name} (${unguarded})`],
  );
  return found.length === 0
    ? {
        type,
        holds: true,
        reason: "Fallback",
        message: "nodes that join are guarded by their labels, also while usher does not answer",
      }
    : {
        type,
        holds: false,
        reason: "NoFallback",
        message: `nodes that join while usher does not answer are not guarded in ${found.join(", ")}`,
      };
}
