import { nameOf } from "../../core/kubernetes/object.ts";
import type { Reconciler } from "../../core/module/reconciler.ts";
import { LIMITS, limitsIn } from "./kinds.ts";
import type { EntryAges } from "./ledger/entry-ages.ts";
import { ledgerReconciler } from "./ledger/reconcile-ledgers.ts";
import { type LedgerKey, settle } from "./ledger/settle.ts";
import { USERS } from "./policy/limit.ts";
import { SINGLETON } from "./policy/policy.ts";
import { reconcileStatus } from "./status/reconcile-status.ts";
import { usageFigures } from "./usage/metrics.ts";
import { subjectUsages } from "./usage/subject-usage.ts";

/** The status of one ProjectRequestLimit, or a ledger to settle. */
type LimitKey = { readonly kind: "status"; readonly name: string } | LedgerKey;

export const limitReconciler: Reconciler<LimitKey, EntryAges> = {
  initialState: ledgerReconciler.initialState,
  // As that of ledgers.
  initialPriority: "normal",
  initialKeys: function* (ages, context) {
    yield* ledgerReconciler.initialKeys?.(ages, context) ?? [];
    for (const object of context.view.list(LIMITS)) yield { kind: "status", name: nameOf(object) };
  },
  keys: (change, ages, context) => {
    const { resource, name, object } = change;
    // Labels decide about limits, and the first user shows that users are served.
    if (resource === USERS) return [{ kind: "status", name: SINGLETON }];
    if (resource !== LIMITS) return ledgerReconciler.keys(change, ages, context);
    return object === undefined ? [] : [{ kind: "status", name }];
  },
  reconcile: (key, ages, context) =>
    key.kind === "status" ? reconcileStatus(key.name, context) : settle(key, ages, context),
  figures: (_sights, { view }) => {
    const limits = limitsIn(view);
    return limits === undefined ? [] : usageFigures(subjectUsages(view, limits));
  },
};
