import type { Commit } from "../../../core/evaluate/decision.ts";
import { type Facts, failureOf, type Need } from "../../../core/evaluate/need.ts";
import { stringAt } from "../../../core/json.ts";
import { type Usage, usageOf } from "../decision/count.ts";
import { describeSubject, ledgerName, type Subject } from "../decision/subject.ts";
import type { Project } from "./holder.ts";
import { type Entry, entriesIn, entryKey, ledgerOf, MOST_ENTRIES, USAGES } from "./usage.ts";
import { placesOf } from "./used.ts";

export interface ReserveRequest {
  readonly subject: Subject;
  readonly limit: number;
  /** Where the limit is in the spec. */
  readonly rule?: string;
  /** What is to be admitted. */
  readonly entry: Entry;
  /** The subject's namespaces in the view. */
  readonly projects: readonly Project[];
  readonly facts: Facts;
}

export type Reservation =
  | { readonly need: Need }
  /** Nothing is known of the ledger: the client should repeat the request. */
  | { readonly busy: string }
  /** No place is free. */
  | { readonly full: Usage }
  /** `used` without the new project. Without a commit there is nothing to write: it is reserved, or too many are for a ledger. */
  | { readonly used: Usage; readonly commit: Commit | undefined };

/** Looks for a free place in the subject's ledger, and reserves it. */
export function reserve(request: ReserveRequest): Reservation {
  const { subject, limit, entry, projects, facts } = request;
  const name = ledgerName(subject);
  const need: Need = { get: { resource: USAGES, name }, live: true };
  const fact = facts.of(need);
  if (fact === undefined) return { need };
  const failure = failureOf(fact);
  if (failure !== undefined) return { busy: failure };
  const stored = "found" in fact ? fact.found : undefined;
  if (stored !== undefined && stringAt(stored, "spec", "subject") !== describeSubject(subject))
    return { busy: `${USAGES} ${name} is not the ledger of this subject` };
  const entries = entriesIn(stored);
  const key = entryKey(entry);
  // A write whose answer was lost, or a review that the API server repeats.
  const others = entries.filter((other) => entryKey(other) !== key);
  const isReserved = others.length < entries.length;
  const used = usageOf(placesOf(subject, projects, others));
  if (!isReserved && used.count >= limit) return { full: used };
  if (isReserved || entries.length >= MOST_ENTRIES) return { used, commit: undefined };
  return {
    used,
    commit: {
      resource: USAGES,
      name,
      object: ledgerOf(subject, [...entries, entry], request.rule),
      resourceVersion: stringAt(stored, "metadata", "resourceVersion"),
      rests: need,
    },
  };
}
