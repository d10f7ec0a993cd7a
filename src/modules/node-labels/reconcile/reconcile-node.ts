import { type NeedMore, need } from "../../../core/decision/decision.ts";
import { failureOf, type Need } from "../../../core/decision/need.ts";
import { isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import { isBeingDeleted, nameOf } from "../../../core/kubernetes/object.ts";
import type { PlannedWrite, ReconcileContext, ReconcileResult } from "../../../core/module/reconciler.ts";
import { differenceOf, keyAndEffect, type NodeDifference, startupChanges } from "../desired/difference.ts";
import { nodePatch } from "../desired/node-patch.ts";
import {
  type LedgerAccess,
  type LedgerCache,
  ledgerNeed,
  ledgerWrites,
  readLedger,
} from "../ledger/ledger.ts";
import { recordOf } from "../ledger/record.ts";
import { graceLeft } from "../rules/ownership.ts";
import type { RuleIndex } from "../rules/rule-index.ts";
import { firstSeenOf, type NodeLabelsState } from "./state.ts";

type Result = ReconcileResult<never>;
type Context = Pick<ReconcileContext, "view" | "facts" | "now" | "elapsed">;

const NOTHING: Result = { writes: [] };

/** Seconds until the next attempt where the ledger could not be read. */
const LEDGER_RETRY = 30;

/**
 * The view's copy says whether there is anything to do; the write rests on the stored node, because the view keeps no resourceVersion:
 * that changes with every heartbeat.
 */
export function reconcileNode(
  name: string,
  index: RuleIndex,
  state: NodeLabelsState,
  context: Context & { readonly namespace: string },
): Result | NeedMore {
  const access: LedgerAccess = { index, cache: state.ledger, namespace: context.namespace };
  const live: Need = { get: { resource: "nodes", name }, live: true };
  const fact = context.facts.of(live);
  if (fact === undefined) return needsOf(live, context.view.get("nodes", "", name), access, state);
  const failure = failureOf(fact);
  if (failure !== undefined) throw new Error(failure);
  if (!("found" in fact) || !isObject(fact.found) || isBeingDeleted(fact.found)) return NOTHING;
  return reconcileStored(fact.found, access, state, context);
}

function needsOf(
  live: Need,
  known: JsonObject | undefined,
  { index, namespace }: LedgerAccess,
  { pending, ledger }: NodeLabelsState,
): Result | NeedMore {
  const difference = known === undefined ? undefined : pending.differenceOf(known, index);
  if (known === undefined || difference === undefined) return NOTHING;
  pending.forget(known);
  return needsLedger(known, difference, ledger) ? need(live, ledgerNeed(namespace)) : need(live);
}

function reconcileStored(
  node: JsonObject,
  access: LedgerAccess,
  state: NodeLabelsState,
  context: Context,
): Result | NeedMore {
  const { index, cache, namespace } = access;
  const { settings } = index;
  // A node that is starting was created without a taint that the ledger lacks: what was read before may be outdated.
  const known = startupChanges(node, settings).length > 0 ? {} : cache;
  const { now, elapsed = now } = context;
  const difference = differenceOf(node, state.pending.desiredOf(node, index), settings, {
    ledger: readLedger(context, access),
    graceLeft: (owner) =>
      graceLeft(owner, elapsed - firstSeenOf(state, owner, elapsed), settings.graceMs, now),
  });
  const ledger = ledgerNeed(namespace);
  if (needsLedger(node, difference, known) && context.facts.of(ledger) === undefined) return need(ledger);
  const first = addsUnrecordedTaint(node, difference, known) ? ledgerWrites(access, context) : [];
  const patch = nodePatch(node, first === undefined ? withoutTaints(node, difference) : difference);
  const waits = difference.changes.flatMap((change) => change.waits ?? []);
  const requeue = [
    ...waits.map((ms) => Math.max(1, Math.ceil(ms / 1_000))),
    ...(difference.needsLedger || first === undefined ? [LEDGER_RETRY] : []),
  ];
  const resourceVersion = stringAt(node, "metadata", "resourceVersion") ?? "";
  const write: PlannedWrite = { patch, of: { resource: "nodes", name: nameOf(node) }, resourceVersion };
  return {
    writes: patch.length === 0 ? [] : [...(first ?? []), write],
    ...(requeue.length === 0 ? {} : { requeueAfter: Math.min(...requeue) }),
  };
}

function needsLedger(node: JsonObject, difference: NodeDifference, cache: LedgerCache): boolean {
  return difference.needsLedger || addsUnrecordedTaint(node, difference, cache);
}

/** Whether a taint is added that the ledger, as last read, does not include: without its rule it would stay forever. */
function addsUnrecordedTaint(node: JsonObject, { changes }: NodeDifference, { lines }: LedgerCache): boolean {
  return changes.some(({ what, key, to: value }) => {
    if (what !== "taint" || value === undefined) return false;
    return lines?.includes({ ...keyAndEffect(key), value }, nameOf(node)) !== true;
  });
}

/** Labels do not wait for the ledger. Removing the startup taint does: the taints that it stands in for are not there yet. */
function withoutTaints(node: JsonObject, difference: NodeDifference): NodeDifference {
  const changes = difference.changes.filter(({ what }) => what !== "taint");
  return { ...difference, changes, record: { ...difference.record, taints: recordOf(node).taints } };
}
