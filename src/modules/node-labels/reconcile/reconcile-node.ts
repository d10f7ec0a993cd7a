import { type NeedMore, need } from "../../../core/evaluate/decision.ts";
import { failureOf, type Need } from "../../../core/evaluate/need.ts";
import { isObject, type JsonObject, stringAt } from "../../../core/json.ts";
import { isBeingDeleted, nameOf } from "../../../core/kubernetes/object.ts";
import type { PlannedWrite, ReconcileContext, ReconcileResult } from "../../../core/module/reconciler.ts";
import { desiredOf } from "../desired/desired.ts";
import { type Difference, differenceOf, keyAndEffect } from "../desired/difference.ts";
import { nodePatch } from "../desired/node-patch.ts";
import { type Bookkeeping, ledgerIn, ledgerNeed, ledgerWrites } from "../ledger/ledger.ts";
import type { LedgerMemory } from "../ledger/ledger-memory.ts";
import { recordOf } from "../ledger/record.ts";
import { needsWork } from "./touched.ts";

const NOTHING: ReconcileResult = { writes: [] };

/** How long to wait where the ledger could not be read. */
const LEDGER_AGAIN = 30;

/**
 * The node as the view has it says whether there is anything to do; what is then done rests on the stored one, because the view keeps no
 * version: that changes with every heartbeat.
 */
export function reconcileNode(
  name: string,
  keeping: Bookkeeping,
  context: ReconcileContext,
): ReconcileResult | NeedMore {
  const { book, memory, namespace } = keeping;
  const known = context.view.get("nodes", "", name);
  if (known === undefined || !needsWork(known, book)) return NOTHING;
  const live: Need = { get: { resource: "nodes", name }, live: true };
  const fact = context.facts.of(live);
  const ledger = ledgerNeed(namespace);
  if (fact === undefined) {
    const difference = differenceOf(known, desiredOf(known, book), book.settings, undefined);
    return asksLedger(known, difference, memory) ? need(live, ledger) : need(live);
  }
  const failure = failureOf(fact);
  if (failure !== undefined) throw new Error(failure);
  if (!("found" in fact) || !isObject(fact.found) || isBeingDeleted(fact.found)) return NOTHING;
  const node = fact.found;
  const desired = desiredOf(node, book, context.now);
  const difference = differenceOf(node, desired, book.settings, ledgerIn(context, keeping));
  if (asksLedger(node, difference, memory) && context.facts.of(ledger) === undefined) return need(ledger);
  const first = unknownTo(node, difference, memory) ? ledgerWrites(keeping, context) : [];
  const patch = nodePatch(node, first === undefined ? withoutTaints(node, difference) : difference);
  const waits = difference.changes.flatMap((change) => change.waits ?? []);
  const again = [
    ...waits.map((ms) => Math.max(1, Math.ceil(ms / 1_000))),
    ...(difference.asksLedger || first === undefined ? [LEDGER_AGAIN] : []),
  ];
  const resourceVersion = stringAt(node, "metadata", "resourceVersion") ?? "";
  const write: PlannedWrite = { patch, of: { resource: "nodes", name }, resourceVersion };
  return {
    writes: patch.length === 0 ? [] : [...(first ?? []), write],
    ...(again.length === 0 ? {} : { again: Math.min(...again) }),
  };
}

function asksLedger(node: JsonObject, difference: Difference, memory: LedgerMemory): boolean {
  return difference.asksLedger || unknownTo(node, difference, memory);
}

/** Whether a taint is to be set that the ledger, as it was last read, does not vouch for: if its rule went then, it would stay for ever. */
function unknownTo(node: JsonObject, { changes }: Difference, { ledger }: LedgerMemory): boolean {
  return changes.some(({ what, key, to: value }) => {
    if (what !== "taint" || value === undefined) return false;
    return ledger?.vouches({ ...keyAndEffect(key), value }, nameOf(node)) !== true;
  });
}

/** Labels do not wait for the ledger. The startup taint does: what it holds work back for is not there yet. */
function withoutTaints(node: JsonObject, difference: Difference): Difference {
  const changes = difference.changes.filter(({ what }) => what !== "taint");
  return { ...difference, changes, record: { ...difference.record, taints: recordOf(node).taints } };
}
