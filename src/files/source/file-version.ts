import type { Json } from "../../core/json.ts";
import type { Located, ReadDocument } from "../reader/read-documents.ts";
import type { ReadFile } from "../reader/reader.ts";
import { type Entry, type EntryProblem, entriesOf, entryKey } from "./entry.ts";
import type { Pause } from "./pause.ts";
import type { Resources } from "./resources.ts";

/** A problem inside an object whose place in the file has yet to be found. */
export interface Pending extends EntryProblem {
  readonly document: string;
}

export interface DocumentVersion {
  readonly hash: string;
  readonly entries: readonly Entry[];
  /** With problems it is read again each time, as their places may have moved. */
  readonly clean: boolean;
}

/** What a file says, as far as it can be used. */
export interface FileVersion {
  readonly documents: readonly DocumentVersion[];
  /** True where something of the file had to be left out. */
  readonly faulty: boolean;
}

/** What came of reading a file, before its policies are checked. */
export interface Candidate {
  documents: DocumentVersion[];
  readonly located: Located[];
  readonly pending: Pending[];
  /** Entries that were not there before: only these need a check. */
  readonly fresh: Entry[];
}

/** What need not be read again, because it is here already. */
export function knownOf(version: FileVersion | undefined): string[] {
  const known: string[] = [];
  for (const { hash, entries, clean } of version?.documents ?? []) {
    if (!clean) continue;
    known.push(hash);
    for (const entry of entries) if (entry.hash !== hash) known.push(entry.hash);
  }
  return known;
}

/** Makes a version of what was read, with the entries of the version before where nothing changed. */
export async function makeCandidate(
  file: string,
  read: ReadFile,
  before: FileVersion | undefined,
  resources: Resources,
  pause: Pause,
): Promise<Candidate> {
  const candidate: Candidate = {
    documents: [],
    located: [...read.problems],
    pending: [],
    fresh: [],
  };
  const reuse = new Reuse(before);
  for (const document of read.documents) {
    if (typeof document === "string") candidate.documents.push(reuse.document(document));
    else {
      candidate.located.push(...document.problems);
      candidate.documents.push(versionOf(file, document, reuse, resources, candidate));
    }
    if (pause.due) await pause.take();
  }
  return candidate;
}

function versionOf(
  file: string,
  { hash, pieces, problems }: ReadDocument,
  reuse: Reuse,
  resources: Resources,
  candidate: Candidate,
): DocumentVersion {
  const entries: Entry[] = [];
  let clean = problems.length === 0;
  for (const { path, hash: name, json } of pieces) {
    if (json === undefined) {
      const known = reuse.entry(name);
      if (known !== undefined) entries.push({ ...known, document: hash, path });
      continue;
    }
    const made = entriesOf(JSON.parse(json) as Json, { file, document: hash, path, hash: name }, resources);
    for (const found of made.problems) {
      clean = false;
      candidate.pending.push({ document: hash, ...found });
    }
    entries.push(...made.entries);
    candidate.fresh.push(...made.entries);
  }
  return { hash, entries, clean };
}

/**
 * Documents and entries of the version before, by their hashes. Most files change in one place, so the next document is looked
 * for where the last one was found, and the maps are made only when that fails. A repeated text is found twice.
 */
class Reuse {
  readonly #documents: readonly DocumentVersion[];
  readonly #used: Uint8Array;
  #next = 0;
  #places: Map<string, number> | undefined;
  #entries: Map<string, Entry> | undefined;

  constructor(before: FileVersion | undefined) {
    this.#documents = before?.documents ?? [];
    this.#used = new Uint8Array(this.#documents.length);
  }

  document(hash: string): DocumentVersion {
    const place = this.#placeOf(hash);
    const known = place === undefined ? undefined : this.#documents[place];
    if (place === undefined || known === undefined) return { hash, entries: [], clean: false };
    this.#next = place + 1;
    if (this.#used[place] === 0) {
      this.#used[place] = 1;
      return known;
    }
    return { ...known, entries: known.entries.map((entry) => ({ ...entry })) };
  }

  entry(hash: string): Entry | undefined {
    if (this.#entries === undefined) {
      this.#entries = new Map();
      for (const { hash: whole, entries } of this.#documents) {
        for (const entry of entries) if (entry.hash !== whole) this.#entries.set(entry.hash, entry);
      }
    }
    return this.#entries.get(hash);
  }

  #placeOf(hash: string): number | undefined {
    for (const near of [this.#next, this.#next + 1]) {
      if (this.#documents[near]?.hash === hash && this.#used[near] === 0) return near;
    }
    this.#places ??= new Map(this.#documents.map((document, i) => [document.hash, i]));
    return this.#places.get(hash);
  }
}

/** The entries that a new version takes away and brings. Equal parts at both ends, usually nearly all, are passed over. */
export function difference(
  before: FileVersion | undefined,
  after: FileVersion | undefined,
): { removed: Entry[]; added: Entry[] } {
  const old = before?.documents ?? [];
  const fresh = after?.documents ?? [];
  let start = 0;
  while (start < old.length && start < fresh.length && old[start]?.entries === fresh[start]?.entries) start++;
  let end = 0;
  const most = Math.min(old.length, fresh.length) - start;
  while (end < most && old[old.length - 1 - end]?.entries === fresh[fresh.length - 1 - end]?.entries) end++;
  const was = new Set(old.slice(start, old.length - end).flatMap(({ entries }) => entries));
  const is = new Set(fresh.slice(start, fresh.length - end).flatMap(({ entries }) => entries));
  return {
    removed: [...was].filter((entry) => !is.has(entry)),
    added: [...is].filter((entry) => !was.has(entry)),
  };
}

/** Gives every entry its turn in the file. */
export function number(version: FileVersion): void {
  let ordinal = 0;
  for (const { entries } of version.documents) for (const entry of entries) entry.ordinal = ordinal++;
}

/**
 * Whether a faulty new version may take the place of the one that is served. A file that was whole stays whole: one typo must
 * not take a policy away. Where the served version had left something out already, what can be used is used, unless an object
 * would be lost to a fault.
 */
export function mayReplace(
  before: FileVersion | undefined,
  after: FileVersion,
  candidate: Candidate,
): boolean {
  if (before === undefined || !after.faulty) return true;
  if (!before.faulty) return false;
  const kept = new Set(after.documents.flatMap(({ entries }) => entries.map(entryKey)));
  const broken = new Set(candidate.pending.map(({ entry }) => keyOf(entry)));
  const invalid = new Set(
    after.documents.flatMap(({ entries }) => entries.filter((one) => one.invalid).map(entryKey)),
  );
  for (const { entries } of before.documents) {
    for (const entry of entries) {
      const key = entryKey(entry);
      if (!entry.invalid && invalid.has(key)) return false;
      if (!kept.has(key) && (candidate.located.length > 0 || broken.has(key) || broken.has(undefined)))
        return false;
    }
  }
  return true;
}

function keyOf({ resource, namespace, name }: Partial<Entry>): string | undefined {
  if (resource === undefined || namespace === undefined || name === undefined) return undefined;
  return entryKey({ resource, namespace, name });
}
