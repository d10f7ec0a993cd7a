import { nameOf } from "../../../core/kubernetes/object.ts";
import type { Read } from "../../../core/module/module.ts";
import type { Reconciler } from "../../../core/module/reconciler.ts";
import { BY_ENTRY, EntryAges, ledgersOf, openEntries } from "./entry-ages.ts";
import { entriesIn, USAGES } from "./project-usage.ts";
import { type LedgerKey, settle } from "./settle.ts";

/** Ledgers from the view of the settler; a decision reads them from etcd. */
export const LEDGERS: Read = {
  resource: "projectusages",
  group: "usher.dev",
  version: "v1alpha1",
  kind: "ProjectUsage",
  scope: "Cluster",
  keep: [["spec"]],
  indexes: [{ name: BY_ENTRY, values: (ledger) => [...new Set(entriesIn(ledger).map(({ name }) => name))] }],
  leaderOnly: true,
  optional: true,
  why: "remove entries of projects that exist from ledgers",
};

/** Releases ledger entries without a namespace. Only ledgers with such entries wait. */
export const ledgerReconciler: Reconciler<LedgerKey, EntryAges> = {
  initialState: () => new EntryAges(),
  // A crash must not block a place for longer than 90 s, however many nodes other modules reconcile first.
  initialPriority: "normal",
  initialKeys: function* (_sights, { view }) {
    for (const ledger of view.list(USAGES))
      if (openEntries(ledger, view).length > 0 || entriesIn(ledger).length === 0)
        yield { kind: "ledger", name: nameOf(ledger) };
  },
  keys: (change, ages, { view }) => ledgersOf(change, ages, view).map((name) => ({ kind: "ledger", name })),
  reconcile: settle,
};
