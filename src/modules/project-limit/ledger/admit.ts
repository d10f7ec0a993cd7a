import { allow, need, type Result } from "../../../core/evaluate/decision.ts";
import type { Finding } from "../../../core/evaluate/finding.ts";
import { stringAt } from "../../../core/json.ts";
import type { Count } from "../../../core/module/metric.ts";
import type { Context } from "../../../core/module/module.ts";
import { namespacesOf } from "../decision/count.ts";
import type { Creation } from "../decision/creation.ts";
import { admitted, ledgerBusy, overLimit } from "../decision/responses.ts";
import { projectOf } from "./match-entry.ts";
import { CONFLICTS, RESERVATIONS } from "./metrics.ts";
import type { LedgerEntry } from "./project-usage.ts";
import { reserve } from "./reserve.ts";

/** Counts exactly: a place is reserved in the ledger of the subject before the creation is admitted. */
export function admitExactly(context: Context, creation: Creation, findings: readonly Finding[]): Result {
  const { view, facts, request } = context;
  const { subject, max: limit, rule } = creation;
  const projects = namespacesOf(view, subject).map(projectOf);
  const reservation = reserve({ subject, limit, rule, entry: entryFor(context), projects, facts });
  if ("need" in reservation) return need(reservation.need);
  const conflicts: Count[] =
    facts.conflicts === 0 ? [] : [{ metric: CONFLICTS, labels: {}, by: facts.conflicts }];
  if ("busy" in reservation) return ledgerBusy(request, creation, reservation.busy, conflicts);
  if ("full" in reservation) return overLimit(request, creation, reservation.full, conflicts);
  const { used, commit } = reservation;
  const counts = commit === undefined ? conflicts : [...conflicts, { metric: RESERVATIONS, labels: {} }];
  return allow([...findings, ...admitted(creation, used)], commit, counts);
}

/**
 * What is reserved. A Namespace has the uid already with which it will be stored. What follows from a ProjectRequest is another object:
 * whatever has the name by then, unless it has it now.
 */
function entryFor({ request, object, view }: Context): LedgerEntry {
  const name = stringAt(object.object, "metadata", "name") ?? request.name;
  const uid = stringAt(object.object, "metadata", "uid");
  if (request.resource.resource === "namespaces" && uid !== undefined) return { name, uid };
  const replaces = stringAt(view.get("namespaces", "", name), "metadata", "uid");
  return { name, request: request.uid, ...(replaces === undefined ? {} : { replaces }) };
}
