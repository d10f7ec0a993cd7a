import type { Json, JsonObject } from "../../../core/json.ts";
import { nameOf } from "../../../core/kubernetes/object.ts";
import type { Change, View } from "../../../core/view/view.ts";
import { entryOf, projectOf } from "./match-entry.ts";
import { entriesIn, entryKey, type LedgerEntry, subjectIn, USAGES } from "./project-usage.ts";

/**
 * An API server ends a create after 34 s, regardless of its own --request-timeout, the client's `timeout` and the
 * timeouts of webhooks, including all webhooks; 34.1 s were measured, and the object may appear at the end of it. The
 * rest is for a write that etcd already has. An entry that was seen this long ago belongs to a finished request,
 * whichever replica admitted it: the entry was written before it was seen. Measured by the settler's own monotonic
 * clock from its own observation, so that no other clock matters.
 */
export const SETTLE_AFTER_MS = 35_000;

/** The index of ledgers by the names of their entries. */
export const BY_ENTRY = "entry";

/** Entries of a ledger that no namespace of the view is the result of. */
export function openEntries(ledger: Json, view: View): LedgerEntry[] {
  const subject = subjectIn(ledger);
  const open: LedgerEntry[] = [];
  for (const [name, entries] of Map.groupBy(entriesIn(ledger), (entry) => entry.name)) {
    const namespace = view.get("namespaces", "", name);
    const holder = namespace === undefined ? undefined : entryOf(projectOf(namespace), entries, subject);
    open.push(...entries.filter((entry) => entry !== holder));
  }
  return open;
}

/** When the settler first saw entries, by ledger. Only for open and new ones, so it stays small. */
export class EntryAges {
  readonly #seen = new Map<string, Map<string, number>>();
  /** New entries of ProjectRequests, open or not, while their request may be in flight. `undefined` until the next look. */
  readonly #came = new Map<string, Map<string, number | undefined>>();
  /** Entries whose namespace is gone. */
  readonly #ended = new Map<string, Set<string>>();
  readonly #empty = new Map<string, number>();
  /** When observation started; entries not seen to arrive existed by then. */
  #began: number | undefined;

  /** The number of entries that are remembered. @visibleForTesting */
  get size(): number {
    return [...this.#seen.values(), ...this.#came.values()].reduce((sum, entries) => sum + entries.size, 0);
  }

  /** The entries that were seen long enough ago, those of them whose namespace was seen, and the time until the next one. */
  look(
    ledger: string,
    open: readonly LedgerEntry[],
    elapsed: number,
  ): { readonly due: LedgerEntry[]; readonly gone: ReadonlySet<string>; readonly dueInMs: number } {
    this.#began ??= elapsed;
    const came = this.#newEntries(ledger, elapsed);
    const gone = new Set(open.map(entryKey)).intersection(this.#ended.get(ledger) ?? new Set());
    const before = this.#seen.get(ledger);
    const seen = new Map<string, number>();
    const due: LedgerEntry[] = [];
    let dueInMs = Math.min(...[...came.values()].map((since) => since + SETTLE_AFTER_MS - elapsed));
    for (const entry of open) {
      const key = entryKey(entry);
      // With its uid the request is over; otherwise, its own time counts.
      const over = entry.uid === undefined ? (came.get(key) ?? this.#began) : Number.NEGATIVE_INFINITY;
      const since = gone.has(key) ? over : (before?.get(key) ?? elapsed);
      seen.set(key, since);
      const left = since + SETTLE_AFTER_MS - elapsed;
      if (left <= 0) due.push(entry);
      else dueInMs = Math.min(dueInMs, left);
    }
    if (seen.size === 0) this.#seen.delete(ledger);
    else this.#seen.set(ledger, seen);
    if (gone.size === 0) this.#ended.delete(ledger);
    else this.#ended.set(ledger, gone);
    return { due, gone, dueInMs };
  }

  /** How long a ledger has had no entries. */
  emptyFor(ledger: string, entries: number, elapsed: number): number {
    if (entries > 0) {
      this.#empty.delete(ledger);
      return 0;
    }
    const since = this.#empty.get(ledger) ?? elapsed;
    this.#empty.set(ledger, since);
    return elapsed - since;
  }

  /** A ledger has new entries of ProjectRequests. */
  came(ledger: string, entries: readonly LedgerEntry[]): void {
    if (entries.length === 0) return;
    const came = this.#came.get(ledger) ?? new Map<string, number | undefined>();
    for (const entry of entries) came.set(entryKey(entry), undefined);
    this.#came.set(ledger, came);
  }

  /**
   * The namespace of an entry existed and is gone. With its uid the request is over, so there is nothing to wait for.
   * Without, it may be an older namespace of the same name, whose deletion the settler saw late: then the entry's own
   * time counts.
   */
  ended(ledger: string, entry: LedgerEntry): void {
    this.#ended.set(ledger, (this.#ended.get(ledger) ?? new Set()).add(entryKey(entry)));
  }

  forget(ledger: string): void {
    for (const map of [this.#seen, this.#came, this.#ended, this.#empty]) map.delete(ledger);
  }

  /** Those whose request may be under way. */
  #newEntries(ledger: string, elapsed: number): Map<string, number> {
    const young = new Map<string, number>();
    for (const [key, since = elapsed] of this.#came.get(ledger) ?? [])
      if (since + SETTLE_AFTER_MS > elapsed) young.set(key, since);
    if (young.size === 0) this.#came.delete(ledger);
    else this.#came.set(ledger, young);
    return young;
  }
}

/** The ledgers that a change of a namespace or of a ledger concerns. */
export function ledgersOf(change: Change, ages: EntryAges, view: View): string[] {
  if (change.resource === USAGES) {
    const known = new Set(requestsIn(change.before).map(entryKey));
    ages.came(
      change.name,
      requestsIn(change.object).filter((entry) => !known.has(entryKey(entry))),
    );
    return [change.name];
  }
  if (change.resource !== "namespaces") return [];
  const ledgers = [...view.lookup(USAGES, BY_ENTRY, change.name)];
  const { before, object } = change;
  if (before !== undefined && uidOf(object) !== uidOf(before))
    for (const ledger of ledgers) {
      const holder = entryOf(projectOf(before), entriesIn(ledger), subjectIn(ledger));
      if (holder !== undefined) ages.ended(nameOf(ledger), holder);
    }
  return ledgers.map(nameOf);
}

/** Entries of ProjectRequests: without a uid, they may be mistaken for another request's. */
function requestsIn(ledger: JsonObject | undefined): LedgerEntry[] {
  return entriesIn(ledger).filter(({ uid }) => uid === undefined);
}

function uidOf(namespace: JsonObject | undefined): string | undefined {
  return namespace === undefined ? undefined : projectOf(namespace).uid;
}
