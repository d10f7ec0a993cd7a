import type { NeedMore } from "../../../core/decision/decision.ts";
import { type Fact, failureOf, type Need } from "../../../core/decision/need.ts";
import { type Json, stringAt } from "../../../core/json.ts";
import type { PlannedWrite, ReconcileContext, ReconcileResult } from "../../../core/module/reconciler.ts";
import { type EntryAges, openEntries } from "./entry-ages.ts";
import { entryOf, projectOf } from "./match-entry.ts";
import { SETTLEMENTS, UNUSED } from "./metrics.ts";
import { entriesIn, entryKey, type LedgerEntry, subjectIn, USAGES } from "./project-usage.ts";

export type LedgerKey = { readonly kind: "ledger"; readonly name: string };

/** Read in one pass. More would make one ledger delay the others. */
const MOST_READS = 50;

/** A read that failed, or that is newer than the view, is repeated after this time. */
const AGAIN_SECONDS = 5;

/** An empty ledger is deleted after this time, so that those of past subjects do not stay. */
const KEEP_EMPTY_MS = 600_000;

/** Releases the entries of one ledger that have no namespace. Nothing is released without a read of etcd. */
export function settle(
  { name }: LedgerKey,
  ages: EntryAges,
  context: ReconcileContext<LedgerKey>,
): ReconcileResult<LedgerKey> | NeedMore {
  const { view, facts, elapsed = 0 } = context;
  const seen = view.get(USAGES, "", name);
  if (seen === undefined) {
    ages.forget(name);
    return { writes: [] };
  }
  const entries = entriesIn(seen);
  const { due, gone, dueInMs } = ages.look(name, openEntries(seen, view), elapsed);
  const emptyMs = ages.emptyFor(name, entries.length, elapsed);
  const isUnused = emptyMs >= KEEP_EMPTY_MS;
  if (due.length === 0 && !isUnused)
    return { writes: [], ...later(entries.length === 0 ? KEEP_EMPTY_MS - emptyMs : dueInMs) };

  const ledger: Need = { get: { resource: USAGES, name }, live: true };
  const now = due.slice(0, MOST_READS);
  // No namespace has an empty name; reading it would be a list.
  const reads = new Map(now.filter((entry) => entry.name !== "").map((entry) => [entry.name, readOf(entry)]));
  const needs = [ledger, ...reads.values()].filter((need) => facts.of(need) === undefined);
  if (needs.length > 0) return { need: needs };
  const stored = foundIn(facts.of(ledger));
  if (stored === undefined) return { writes: [], requeueAfter: AGAIN_SECONDS };
  const left = entriesIn(stored);
  if (isUnused && left.length === 0) return { writes: [removal(name, stored)] };

  const isReleased = (entry: LedgerEntry): boolean => {
    const need = reads.get(entry.name);
    return need === undefined || hasNoNamespace(entry, left, stored, facts.of(need));
  };
  const released = new Set(now.filter(isReleased).map(entryKey));
  const kept = left.filter((entry) => !released.has(entryKey(entry)));
  const count = left.length - kept.length;
  const unused = left.filter((entry) => released.has(entryKey(entry)) && !gone.has(entryKey(entry))).length;
  if (count === 0) return { writes: [], requeueAfter: AGAIN_SECONDS };
  // Without any project no ledger stays: reviews that no API server sent may name any number of users.
  const write: PlannedWrite =
    unused === left.length
      ? removal(name, stored)
      : {
          patch: [{ op: "replace", path: "/spec/entries", value: kept as unknown as Json[] }],
          of: { resource: USAGES, name },
          resourceVersion: stringAt(stored, "metadata", "resourceVersion") ?? "",
        };
  return {
    writes: [write],
    counts: [
      { metric: SETTLEMENTS, labels: {}, by: count },
      ...(unused === 0 ? [] : [{ metric: UNUSED, labels: {}, by: unused }]),
    ],
    ...(due.length > now.length ? { enqueue: [{ kind: "ledger", name }] } : later(dueInMs)),
  };
}

function readOf({ name }: LedgerEntry): Need {
  return { get: { resource: "namespaces", name }, live: true };
}

/** A failed read is no evidence. */
function hasNoNamespace(
  entry: LedgerEntry,
  entries: readonly LedgerEntry[],
  ledger: Json,
  fact: Fact | undefined,
): boolean {
  if (fact === undefined || failureOf(fact) !== undefined) return false;
  if (!("found" in fact)) return true;
  const holder = entryOf(projectOf(fact.found), entries, subjectIn(ledger));
  return holder === undefined || entryKey(holder) !== entryKey(entry);
}

function foundIn(fact: Fact | undefined): Json | undefined {
  return fact !== undefined && "found" in fact ? fact.found : undefined;
}

function removal(name: string, stored: Json): PlannedWrite {
  return {
    delete: { resource: USAGES, name },
    resourceVersion: stringAt(stored, "metadata", "resourceVersion") ?? "",
  };
}

function later(ms: number): { readonly requeueAfter?: number } {
  return Number.isFinite(ms) ? { requeueAfter: Math.max(0, ms) / 1_000 } : {};
}
