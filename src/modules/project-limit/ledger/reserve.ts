import type { Commit } from "../../../core/decision/decision.ts";
import { type Facts, failureOf, type Need } from "../../../core/decision/need.ts";
import { stringAt } from "../../../core/json.ts";
import { type Project as Place, type Usage, usageOf } from "../projects.ts";
import { type LimitSubject, ledgerName } from "../subject.ts";
import { entryOf, type LedgerProject } from "./match-entry.ts";
import {
  entriesIn,
  entryKey,
  type LedgerEntry,
  ledgerOf,
  MOST_ENTRIES,
  subjectText,
  USAGES,
} from "./project-usage.ts";

/**
 * Places of one subject that are reserved and have no namespace yet. A namespace is in the view some 60 ms after it was admitted, so
 * this is more than a burst of 200 creations. A review that no API server sent can occupy no more, for as long as a request may last.
 */
export const MOST_OPEN = 250;

/** Reservations of one name at the same time, each for a request that may create it. */
const MOST_OF_ONE_NAME = 10;

interface ReserveRequest {
  readonly subject: LimitSubject;
  readonly limit: number;
  /** The path of the limit in the spec. */
  readonly rule?: string;
  /** The admitted creation. */
  readonly entry: LedgerEntry;
  /** The subject's namespaces in the view. */
  readonly projects: readonly LedgerProject[];
  readonly facts: Facts;
}

export type Reservation =
  | { readonly need: Need }
  /** The ledger is unknown: the client should repeat the request. */
  | { readonly busy: string }
  /** No place is free. */
  | { readonly full: Usage; readonly unwritten?: true | undefined }
  /** `used` without the new project. Without a commit there is nothing to write: it is already reserved, or exceeds a ledger. */
  | { readonly used: Usage; readonly commit: Commit | undefined };

/** The ledger of a subject. */
export function ledgerNeed(subject: LimitSubject): LedgerNeed {
  return { get: { resource: USAGES, name: ledgerName(subject) }, live: true, mayBeAbsent: true };
}

type LedgerNeed = Extract<Need, { readonly get: unknown }>;

/** Finds a free place in the subject's ledger, and reserves it. */
export function reserve(request: ReserveRequest): Reservation {
  const ledger = ledgerNeed(request.subject);
  const found = reserveIn(request, ledger);
  // Places of other requests that are still being written may never be written, so they refuse no request.
  return "full" in found && found.unwritten ? reserveIn(request, { ...ledger, written: true }) : found;
}

function reserveIn(
  { subject, limit, entry, projects, facts, rule }: ReserveRequest,
  need: LedgerNeed,
): Reservation {
  const { name } = need.get;
  const fact = facts.of(need);
  if (fact === undefined) return { need };
  const failure = failureOf(fact);
  if (failure !== undefined) return { busy: failure };
  const stored = "found" in fact ? fact.found : undefined;
  if (stored !== undefined && stringAt(stored, "spec", "subject") !== subjectText(subject))
    return { busy: `${USAGES} ${name} is not the ledger of this subject` };
  const entries = entriesIn(stored);
  const key = entryKey(entry);
  // A write whose answer was lost, or a review that the API server repeats.
  const isReserved = entries.some((other) => entryKey(other) === key);
  // A client that repeats a request has its place: no two namespaces share a name. If the namespace exists, the limit
  // counts first, as upstream.
  const isShown = projects.some(({ name: shown }) => shown === entry.name);
  const others =
    isShown || entry.name === "" ? entries : entries.filter((other) => other.name !== entry.name);
  const used = usageOf(placesOf(subject, projects, others));
  if (isReserved) return { used, commit: undefined };
  if (used.count >= limit) return { full: used, unwritten: "found" in fact ? fact.unwritten : undefined };
  const same = entry.name === "" ? 0 : entries.filter((other) => other.name === entry.name).length;
  // Otherwise requests for one name could fill the ledger, after which nothing would be exact.
  if (same >= MOST_OF_ONE_NAME) return { busy: `${same} requests for ${entry.name} are not over yet` };
  if (entries.length >= MOST_ENTRIES)
    return used.count >= MOST_ENTRIES
      ? { used, commit: undefined }
      : { busy: "the ledger is full of reservations that are not over yet" };
  const shown = new Set(projects.map((project) => project.name));
  const open = entries.filter((other) => !shown.has(other.name)).length;
  if (open >= MOST_OPEN) return { busy: `${open} requests of the same user are not over yet` };
  return {
    used,
    commit: {
      resource: USAGES,
      name,
      object: ledgerOf(subject, [...entries, entry], rule),
      resourceVersion: stringAt(stored, "metadata", "resourceVersion"),
      rests: need,
    },
  };
}

/**
 * The places in use: by namespaces of the view, and by entries whose namespace it does not show yet. One name is one
 * place, because no two namespaces share one; but a terminating namespace, which may be tolerated, can be followed by
 * another of its name, and then another entry takes a place beside it.
 */
function placesOf(
  subject: LimitSubject,
  projects: readonly LedgerProject[],
  entries: readonly LedgerEntry[],
): Place[] {
  const reserved = Map.groupBy(entries, ({ name }) => name);
  const places: Place[] = [];
  for (const { name, terminating, ...project } of projects) {
    places.push({ name, terminating });
    const same = reserved.get(name) ?? [];
    reserved.delete(name);
    if (!terminating) continue;
    const holder = entryOf({ name, terminating, ...project }, same, subject);
    if (same.some((entry) => entry !== holder)) places.push({ name, terminating: false });
  }
  // A request without a name will get a unique one.
  for (const [name, same] of reserved)
    for (const _ of name === "" ? same : [name]) places.push({ name, terminating: false });
  return places;
}
