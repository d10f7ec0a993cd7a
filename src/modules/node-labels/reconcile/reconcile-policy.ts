import { refOf } from "../../../core/evaluate/assembly.ts";
import { type NeedMore, need } from "../../../core/evaluate/decision.ts";
import type { EventToWrite } from "../../../core/evaluate/effects.ts";
import { failureOf, type Need } from "../../../core/evaluate/need.ts";
import { equal, isObject, type JsonObject, listAt, stringAt } from "../../../core/json.ts";
import { isBeingDeleted, nameOf } from "../../../core/kubernetes/object.ts";
import type { ReconcileContext, ReconcileResult } from "../../../core/module/reconciler.ts";
import { checkObject } from "../../../core/policy/check.ts";
import type { Kind } from "../../../core/policy/kind.ts";
import { FINALIZER, livePredecessor } from "../predecessor.ts";
import { conflictsOf, nodesOf } from "../rules/conflicts.ts";
import type { NodeRule } from "../rules/rule.ts";
import type { Policy, RuleIndex } from "../rules/rule-index.ts";
import { inertBecause } from "../settings.ts";
import { type Conflict, listed, type RuleState, statusOfOwnership, statusOfRule } from "./status.ts";

const NOTHING: ReconcileResult = { writes: [] };

interface Target {
  readonly kind: Kind<Policy>;
  readonly of: { readonly resource: string; readonly namespace: string; readonly name: string };
  readonly book: RuleIndex;
}

/** A rule is counted so often at most while it stays as it is: a thousand nodes that join must not mean a thousand writes of its status. */
const COUNT_EVERY_MS = 5_000;

/** Keeps the status of a policy, and takes another system's finalizer off it. */
export function reconcilePolicy(
  { kind, of, book }: Target,
  context: ReconcileContext,
): ReconcileResult | NeedMore {
  const key = `policy ${of.resource} ${of.namespace}/${of.name}`;
  // What could not be written was not counted.
  const failed = context.failure?.(key) !== undefined;
  const wait = failed ? 0 : waitOf(book.counted.get(`${of.namespace}/${of.name}`), context.now);
  if (kind.kind === "Labels" && wait > 0) return { writes: [], again: Math.ceil(wait / 1_000) };
  // The view keeps no status and no version: both change without meaning anything to a node.
  const live: Need = { get: of, live: true };
  const fact = context.facts.of(live);
  if (fact === undefined) return need(live);
  const failure = failureOf(fact);
  if (failure !== undefined) throw new Error(failure);
  if (!("found" in fact) || !isObject(fact.found)) return NOTHING;
  const object = fact.found;
  const resourceVersion = stringAt(object, "metadata", "resourceVersion") ?? "";
  const finalizers = listAt(object, "metadata", "finalizers");
  // While the other system lives it would put it on again, for ever; on what is being deleted it does not.
  const contested = !isBeingDeleted(object) && livePredecessor(context.view) !== undefined;
  if (finalizers.includes(FINALIZER) && !contested) {
    const value = finalizers.filter((one) => one !== FINALIZER);
    const patch = [{ op: "replace" as const, path: "/metadata/finalizers", value }];
    // What was written has another version; the status comes after it.
    const also = isBeingDeleted(object) ? [] : [key];
    return { writes: [{ patch, of, resourceVersion }], also };
  }
  if (isBeingDeleted(object)) return NOTHING;
  const before = isObject(object["status"]) ? object["status"] : {};
  const ref = refOf(kind, object);
  const { policy } = kind.prepare(object, ref);
  const problems = checkObject(kind, object, context.view);
  const known = { generation: ref.generation, problems, inert: inertBecause(of.namespace, book.settings) };
  if (policy?.kind !== "rule") {
    const status = statusOfOwnership(known, before, context.now);
    return equal(status, before) ? NOTHING : { writes: [{ status, of, resourceVersion }] };
  }
  const state = { ...known, ...standing(policy, book, context) };
  book.counted.set(policy.id, context.now);
  const status = statusOfRule(state, before, context.now);
  if (equal(status, before)) return NOTHING;
  return { writes: [{ status, of, resourceVersion }], events: quarrels(policy, state.conflicts, before) };
}

/** How long until it may be counted again. A clock that was set back says nothing. */
function waitOf(counted: number | undefined, now: number): number {
  return counted === undefined || counted > now ? 0 : Math.max(0, counted + COUNT_EVERY_MS - now);
}

function standing(
  rule: NodeRule,
  book: RuleIndex,
  { view, failure }: ReconcileContext,
): Pick<RuleState, "matchedNodes" | "conflicts" | "failing" | "predecessor"> {
  const nodes = book.settings.enabled && book.counts(rule) ? nodesOf(rule, book, view) : [];
  const failures = nodes.flatMap((node) => failure?.(`node ${nameOf(node)}`) ?? []);
  const [error] = failures;
  return {
    matchedNodes: nodes.length,
    conflicts: conflictsOf(rule, book, nodes),
    failing: error === undefined ? undefined : { nodes: failures.length, error },
    predecessor: livePredecessor(view),
  };
}

/** An event for each conflict that the status did not know yet. */
function quarrels({ ref, id }: NodeRule, conflicts: readonly Conflict[], before: JsonObject): EventToWrite[] {
  const known = new Set(
    listAt(before, "conflicts").map((one) => `${stringAt(one, "key")} ${stringAt(one, "with")}`),
  );
  const { kind, namespace = "", name } = ref;
  // Of those that have no place in it nobody could say whether it knew them.
  return listed(conflicts)
    .filter((conflict) => !known.has(`${conflict.key} ${conflict.with}`))
    .slice(0, MOST_EVENTS)
    .map(({ key, with: other, wins, nodes }) => ({
      type: "Warning",
      reason: "LabelConflict",
      regarding: { kind, namespace, name },
      policy: ref,
      message: `${key}: rules ${id} and ${other} say something different on ${nodes} nodes; ${wins ? id : other} wins (USHER-L01)`,
    }));
}

const MOST_EVENTS = 4;
