import type { JsonObject } from "../../../src/core/json.ts";

/** A change of one object, in the order of revisions. */
export interface StoreEvent {
  readonly revision: number;
  readonly type: "ADDED" | "MODIFIED" | "DELETED";
  /** `configmaps`, `deployments.apps` */
  readonly resource: string;
  /** `namespace/name`, or `name` for cluster-scoped objects. */
  readonly key: string;
  /** A deleted object has its last state, with the resourceVersion of the deletion. */
  readonly object: JsonObject;
  readonly previous: JsonObject | undefined;
  /** The user that wrote it. */
  readonly by: string;
}

/** A state of one key; without an object: deleted. */
interface Version {
  readonly revision: number;
  readonly object: JsonObject | undefined;
}

/**
 * What etcd holds: objects by key, one revision counter for all of them, and the history since the last compaction.
 * Objects are frozen: readers share them, and a write stores a new one.
 */
export class Store {
  readonly #versions = new Map<string, Map<string, Version[]>>();
  readonly #listeners = new Set<(event: StoreEvent) => void>();
  #events: StoreEvent[] = [];
  #revision = 1;
  #compacted = 0;

  get revision(): number {
    return this.#revision;
  }

  /** States before this revision can't be read any more. */
  get compacted(): number {
    return this.#compacted;
  }

  /** Since the last compaction. */
  eventsAfter(revision: number): readonly StoreEvent[] {
    let low = 0;
    let high = this.#events.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((this.#events[middle]?.revision ?? 0) > revision) high = middle;
      else low = middle + 1;
    }
    return this.#events.slice(low);
  }

  get(resource: string, key: string, revision = this.#revision): JsonObject | undefined {
    return stateAt(this.#versions.get(resource)?.get(key), revision);
  }

  /** In the order of keys, as etcd returns a range. */
  list(resource: string, revision = this.#revision): { readonly key: string; readonly object: JsonObject }[] {
    const found: { key: string; object: JsonObject }[] = [];
    for (const [key, versions] of this.#versions.get(resource) ?? []) {
      const object = stateAt(versions, revision);
      if (object !== undefined) found.push({ key, object });
    }
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  /** Resources that have, or had, objects. */
  resources(): string[] {
    return [...this.#versions.keys()].sort();
  }

  /**
   * Stores an object, or deletes it, if the key's last write has the expected revision; 0: if the key does not exist.
   * Returns the stored object with its resourceVersion.
   */
  write(
    resource: string,
    key: string,
    object: JsonObject | undefined,
    expected: number,
    by: string,
  ): JsonObject | "conflict" {
    const previous = this.get(resource, key);
    if (revisionOf(previous) !== expected) return "conflict";
    const base = object ?? previous;
    if (base === undefined) return "conflict";
    this.#revision += 1;
    const revision = this.#revision;
    const stored = frozen(withVersion(base, revision));
    const keys = this.#versions.get(resource) ?? new Map<string, Version[]>();
    this.#versions.set(resource, keys);
    const versions = keys.get(key) ?? [];
    keys.set(key, versions);
    versions.push({ revision, object: object === undefined ? undefined : stored });
    const type = object === undefined ? "DELETED" : previous === undefined ? "ADDED" : "MODIFIED";
    const event: StoreEvent = { revision, type, resource, key, object: stored, previous, by };
    this.#events.push(event);
    for (const listener of [...this.#listeners]) listener(event);
    return stored;
  }

  /** Forgets states and events before a revision. @default all but the current state */
  compact(revision = this.#revision): void {
    if (revision <= this.#compacted) return;
    this.#compacted = revision;
    this.#events = [...this.eventsAfter(revision)];
    for (const keys of this.#versions.values()) {
      for (const [key, versions] of keys) {
        const newest = versions.findLastIndex((one) => one.revision <= revision);
        if (newest > 0) versions.splice(0, newest);
        if (versions.length === 1 && versions[0]?.object === undefined) keys.delete(key);
      }
    }
  }

  /** Called for each write, before the writer gets its response. */
  subscribe(listener: (event: StoreEvent) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }
}

/** The revision of an object's last write; 0 without an object. */
export function revisionOf(object: JsonObject | undefined): number {
  const metadata = object?.["metadata"] as JsonObject | undefined;
  return Number(metadata?.["resourceVersion"] ?? 0);
}

function stateAt(versions: readonly Version[] | undefined, revision: number): JsonObject | undefined {
  return versions?.findLast((one) => one.revision <= revision)?.object;
}

function withVersion(object: JsonObject, revision: number): JsonObject {
  const metadata = object["metadata"] as JsonObject;
  return { ...object, metadata: { ...metadata, resourceVersion: String(revision) } };
}

function frozen<T>(value: T): T {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return value;
  for (const one of Object.values(value)) frozen(one);
  return Object.freeze(value);
}

const texts = new WeakMap<object, string>();

/** JSON, made once for each stored object: all watches and readers get the same text. */
export function textOf(object: object): string {
  if (!Object.isFrozen(object)) return JSON.stringify(object);
  const known = texts.get(object) ?? JSON.stringify(object);
  texts.set(object, known);
  return known;
}
