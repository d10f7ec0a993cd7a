import type { NeedMore } from "../../../core/decision/decision.ts";
import type { EventToWrite } from "../../../core/decision/finding.ts";
import { equal, isObject, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { isBeingDeleted, nameOf } from "../../../core/kubernetes/object.ts";
import { liveObject, type ReconcileContext, type ReconcileResult } from "../../../core/module/reconciler.ts";
import { checkObject } from "../../../core/policy/check.ts";
import { refOf } from "../../../core/policy/policy-ref.ts";
import { labels, ownedLabels } from "../kinds.ts";
import { FINALIZER, livePredecessor } from "../predecessor.ts";
import { conflictsOf, nodesOf, type RuleConflict } from "../rules/conflicts.ts";
import type { NodeRule } from "../rules/rule.ts";
import type { RuleIndex } from "../rules/rule-index.ts";
import { inertBecause } from "../settings.ts";
import { LABELS, type NodeLabelsKey, nodeKey, type PolicyKey } from "./keys.ts";
import type { NodeLabelsState } from "./state.ts";
import { listed, type RuleState, statusOfOwnership, statusOfRule } from "./status.ts";

type Result = ReconcileResult<NodeLabelsKey>;
type Context = ReconcileContext<NodeLabelsKey>;

const NOTHING: Result = { writes: [] };

/** Nodes of an unchanged rule are counted at most so often: a thousand nodes that join must not cause a thousand writes of its status. */
const COUNT_EVERY_MS = 5_000;

const MOST_EVENTS = 4;

/** Keeps the status of a policy current, and removes node-label-operator's finalizer. */
export function reconcilePolicy(
  key: PolicyKey,
  index: RuleIndex,
  state: NodeLabelsState,
  context: Context,
): Result | NeedMore {
  const { resource, namespace, name } = key;
  const of = { resource, namespace, name };
  const kind = resource === LABELS ? labels : ownedLabels;
  // After a failed write the counts are not in the status.
  const failed = context.failure?.(key) !== undefined;
  const wait = failed ? 0 : untilNextCount(state.countedAt.get(`${namespace}/${name}`), context.now);
  if (kind === labels && wait > 0) return { writes: [], requeueAfter: Math.ceil(wait / 1_000) };
  const live = liveObject(of, context.facts);
  if (live === undefined) return NOTHING;
  if ("need" in live) return live;
  const { object, resourceVersion } = live;
  const finalizers = listAt(object, "metadata", "finalizers");
  // A running node-label-operator would add it again forever; but not to an object that is being deleted.
  const contested = !isBeingDeleted(object) && livePredecessor(context.view) !== undefined;
  if (finalizers.includes(FINALIZER) && !contested) {
    const value = finalizers.filter((one) => one !== FINALIZER);
    const patch = [{ op: "replace" as const, path: "/metadata/finalizers", value }];
    // The write changes the resourceVersion; the status follows it.
    return { writes: [{ patch, of, resourceVersion }], enqueue: isBeingDeleted(object) ? [] : [key] };
  }
  if (isBeingDeleted(object)) return NOTHING;
  const before = isObject(object["status"]) ? object["status"] : {};
  const ref = refOf(kind, object);
  const { policy } = kind.prepare(object, ref);
  const problems = checkObject(kind, object, context.view);
  const known = { generation: ref.generation, problems, inert: inertBecause(namespace, index.settings) };
  if (policy?.kind !== "rule") {
    const status = statusOfOwnership(known, before, context.now);
    return equal(status, before) ? NOTHING : { writes: [{ status, of, resourceVersion }] };
  }
  const rule = { ...known, ...observe(policy, index, context) };
  state.countedAt.set(policy.id, context.now);
  const status = statusOfRule(rule, before, context.now);
  if (equal(status, before)) return NOTHING;
  return {
    writes: [{ status, of, resourceVersion }],
    events: conflictEvents(policy, rule.conflicts, before),
  };
}

/** Milliseconds until the nodes of a rule may be counted again. A count in the future means that the clock was set back. */
function untilNextCount(countedAt: number | undefined, now: number): number {
  return countedAt === undefined || countedAt > now ? 0 : Math.max(0, countedAt + COUNT_EVERY_MS - now);
}

function observe(
  rule: NodeRule,
  index: RuleIndex,
  { view, failure }: Context,
): Pick<RuleState, "matchedNodes" | "conflicts" | "failing" | "predecessor"> {
  const nodes = index.inScope(rule) ? nodesOf(rule, index, view) : [];
  const failures = nodes.flatMap((node) => failure?.(nodeKey(nameOf(node))) ?? []);
  const [error] = failures;
  return {
    matchedNodes: nodes.length,
    conflicts: conflictsOf(rule, index, nodes),
    failing: error === undefined ? undefined : { nodes: failures.length, error },
    predecessor: livePredecessor(view),
  };
}

/**
 * An event for each listed conflict that is not in the status yet. For unlisted ones the status does not show whether
 * they are new.
 */
function conflictEvents(
  { ref, id }: NodeRule,
  conflicts: readonly RuleConflict[],
  before: JsonObject,
): EventToWrite[] {
  const known = new Set(
    listAt(before, "conflicts").map((one) => `${stringAt(one, "key")} ${stringAt(one, "with")}`),
  );
  const { kind, namespace = "", name } = ref;
  return listed(conflicts)
    .filter((conflict) => !known.has(`${conflict.key} ${conflict.with}`))
    .slice(0, MOST_EVENTS)
    .map(({ key, with: other, wins, nodes }) => ({
      type: "Warning",
      reason: "LabelConflict",
      regarding: { kind, namespace, name },
      policy: ref,
      message: `${key}: rules ${id} and ${other} set different values on ${nodes} nodes; ${wins ? id : other} wins (USHER-L01)`,
    }));
}
