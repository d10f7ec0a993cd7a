import { equal, type JsonObject } from "../json.ts";
import type { ServerVersion } from "../kubernetes/versions.ts";
import { type Change, type Index, objectKey, type View } from "./view.ts";

/** Objects of one resource with their indexes. */
class Table {
  readonly objects: Map<string, JsonObject>;
  readonly namespaces: Map<string, Set<string>>;
  readonly indexed: Map<string, Map<string, Set<string>>>;
  readonly indexes: readonly Index[];
  /** Whether more than one store uses this table: then a writer copies it first. */
  shared = false;

  constructor(indexes: readonly Index[], from?: Table) {
    this.indexes = indexes;
    this.objects = new Map(from?.objects);
    this.namespaces = copyOfSets(from?.namespaces);
    this.indexed = new Map(indexes.map(({ name }) => [name, copyOfSets(from?.indexed.get(name))]));
  }

  put(change: Change): void {
    const key = objectKey(change.namespace, change.name);
    const before = this.objects.get(key);
    if (before !== undefined) {
      for (const index of this.indexes) {
        for (const value of index.values(before)) drop(this.indexed.get(index.name), value, key);
      }
    }
    if (change.object === undefined) {
      this.objects.delete(key);
      drop(this.namespaces, change.namespace, key);
      return;
    }
    this.objects.set(key, change.object);
    file(this.namespaces, change.namespace, key);
    for (const index of this.indexes) {
      for (const value of index.values(change.object)) file(this.indexed.get(index.name), value, key);
    }
  }
}

/**
 * The view as every shell keeps it: tables by resource, changed between evaluations. `apply` returns the effective
 * changes, so that an object without changes in kept fields costs nothing further.
 */
export class Store implements View {
  readonly #tables: Map<string, Table>;
  readonly #indexes: ReadonlyMap<string, readonly Index[]>;
  serverVersion: ServerVersion | undefined;

  constructor(indexes: ReadonlyMap<string, readonly Index[]> = new Map(), tables = new Map<string, Table>()) {
    this.#indexes = indexes;
    this.#tables = tables;
  }

  /** Records that the source has this resource, even if it has no objects. */
  serve(resource: string): void {
    if (!this.#tables.has(resource)) this.#tables.set(resource, this.#table(resource));
  }

  apply(changes: readonly Change[]): Change[] {
    const real: Change[] = [];
    for (const change of changes) {
      this.serve(change.resource);
      const before = this.get(change.resource, change.namespace, change.name);
      if (before === change.object || equal(before, change.object)) continue;
      this.#ownTable(change.resource).put(change);
      real.push(before === undefined ? change : { ...change, before });
    }
    return real;
  }

  get(resource: string, namespace: string, name: string): JsonObject | undefined {
    return this.#tables.get(resource)?.objects.get(objectKey(namespace, name));
  }

  *list(resource: string, namespace?: string): Iterable<JsonObject> {
    const table = this.#tables.get(resource);
    if (table === undefined) return;
    if (namespace === undefined) yield* table.objects.values();
    else yield* pick(table, table.namespaces.get(namespace));
  }

  *lookup(resource: string, index: string, value: string): Iterable<JsonObject> {
    const table = this.#tables.get(resource);
    if (table === undefined) return;
    yield* pick(table, table.indexed.get(index)?.get(value));
  }

  count(resource: string): number {
    return this.#tables.get(resource)?.objects.size ?? 0;
  }

  served(resource: string): boolean {
    return this.#tables.has(resource);
  }

  with(changes: readonly Change[]): Store {
    const supposed = this.fork(new Set(changes.map((change) => change.resource)));
    supposed.apply(changes);
    return supposed;
  }

  /**
   * A store with the current content of this one, independent of it. It copies the named tables, because they are about
   * to change; all others are shared until one of them writes.
   */
  fork(resources: ReadonlySet<string>): Store {
    const tables = new Map<string, Table>();
    for (const [resource, table] of this.#tables) {
      if (resources.has(resource)) tables.set(resource, this.#table(resource, table));
      else {
        table.shared = true;
        tables.set(resource, table);
      }
    }
    const fork = new Store(this.#indexes, tables);
    fork.serverVersion = this.serverVersion;
    return fork;
  }

  #ownTable(resource: string): Table {
    const known = this.#tables.get(resource);
    if (known !== undefined && !known.shared) return known;
    const own = this.#table(resource, known);
    this.#tables.set(resource, own);
    return own;
  }

  #table(resource: string, from?: Table): Table {
    return new Table(this.#indexes.get(resource) ?? [], from);
  }
}

function* pick(table: Table, keys: ReadonlySet<string> | undefined): Iterable<JsonObject> {
  if (keys === undefined) return;
  for (const key of keys) {
    const object = table.objects.get(key);
    if (object !== undefined) yield object;
  }
}

function file(sets: Map<string, Set<string>> | undefined, value: string, key: string): void {
  const set = sets?.get(value);
  if (set === undefined) sets?.set(value, new Set([key]));
  else set.add(key);
}

function drop(sets: Map<string, Set<string>> | undefined, value: string, key: string): void {
  const set = sets?.get(value);
  if (set?.delete(key) && set.size === 0) sets?.delete(value);
}

function copyOfSets(sets: ReadonlyMap<string, ReadonlySet<string>> | undefined): Map<string, Set<string>> {
  const copy = new Map<string, Set<string>>();
  if (sets !== undefined) for (const [value, keys] of sets) copy.set(value, new Set(keys));
  return copy;
}
