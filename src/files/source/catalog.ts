import type { Commit } from "../../core/decision/decision.ts";
import type { Fact, Need } from "../../core/decision/need.ts";
import type { CommitResult } from "../../core/evaluate/evaluate.ts";
import { at, equal, isObject, type JsonObject, stringAt } from "../../core/json.ts";
import { labelsOf } from "../../core/kubernetes/object.ts";
import { byText, compareText } from "../../core/order.ts";
import { type Change, objectKey } from "../../core/view/view.ts";
import { parseSelectorText } from "../text/selector-text.ts";
import type { Entry } from "./entry.ts";

/** Everything known under one name: its definitions, the first of which counts, and the version written in memory. */
interface Slot {
  readonly resource: string;
  readonly namespace: string;
  readonly name: string;
  definitions: Entry[];
  written: JsonObject | undefined;
  version: number;
}

/** Every complete object of the source, as an API server would have it. */
export class Catalog {
  readonly #tables = new Map<string, Map<string, Slot>>();
  readonly #duplicates = new Set<Slot>();
  readonly #ownGroups: ReadonlySet<string>;
  #version = 0;

  readonly #roots: readonly string[];

  /**
   * `ownGroups`: API groups that the source stands for, beside the Kubernetes groups that every cluster has. `roots`:
   * the directories and files of the source, if several: the first one's definition of an object counts.
   */
  constructor(ownGroups: Iterable<string> = [], roots: readonly string[] = []) {
    this.#ownGroups = new Set(ownGroups);
    this.#roots = roots.map((root) => root.replace(/\/+$/, ""));
  }

  /**
   * Removes and adds entries together and returns the changes. A file that redefines an object replaces the version
   * written in memory, like any other write.
   */
  update(removed: readonly Entry[], added: readonly Entry[]): Change[] {
    const touched = new Map<Slot, { current: JsonObject | undefined; defined: JsonObject | undefined }>();
    for (const entry of [...removed, ...added]) {
      const slot = this.#slot(entry.resource.name, entry.namespace, entry.name);
      if (touched.has(slot)) continue;
      touched.set(slot, { current: currentOf(slot), defined: slot.definitions[0]?.object });
    }
    for (const entry of removed) {
      const slot = this.#slot(entry.resource.name, entry.namespace, entry.name);
      slot.definitions = slot.definitions.filter((definition) => definition !== entry);
    }
    for (const entry of added)
      this.#slot(entry.resource.name, entry.namespace, entry.name).definitions.push(entry);
    const changes: Change[] = [];
    for (const [slot, before] of touched) {
      slot.definitions.sort((a, b) => this.#inOrder(a, b));
      if (slot.definitions.length > 1) this.#duplicates.add(slot);
      else this.#duplicates.delete(slot);
      if (!equal(before.defined, slot.definitions[0]?.object)) slot.written = undefined;
      const object = currentOf(slot);
      if (!equal(before.current, object)) {
        slot.version = ++this.#version;
        changes.push({ resource: slot.resource, namespace: slot.namespace, name: slot.name, object });
      }
      if (object === undefined) this.#tables.get(slot.resource)?.delete(objectKey(slot.namespace, slot.name));
    }
    return changes;
  }

  /** Objects with more than one definition, each with its positions in order. */
  *duplicates(): Iterable<readonly Entry[]> {
    for (const { definitions } of this.#duplicates) yield definitions;
  }

  get(resource: string, namespace: string, name: string): JsonObject | undefined {
    const slot = this.#tables.get(resource)?.get(objectKey(namespace, name));
    return slot === undefined ? undefined : currentOf(slot);
  }

  /** The number of objects of each resource. */
  counts(): Record<string, number> {
    const counts: [string, number][] = [];
    for (const [resource, table] of this.#tables) if (table.size > 0) counts.push([resource, table.size]);
    return Object.fromEntries(counts.sort(byText(([key]) => key)));
  }

  answer(need: Need): Fact {
    if ("get" in need) {
      const { resource, namespace = "", name } = need.get;
      if (!this.#serves(groupOf(resource))) return { absent: "NotServed" };
      const slot = this.#tables.get(resource)?.get(objectKey(namespace, name));
      const found = slot === undefined ? undefined : withVersion(slot);
      return found === undefined ? { absent: "NotFound" } : { found, complete: true };
    }
    if ("list" in need) return this.#list(need.list, need.limit);
    return {
      failed: "files have no authorizer: access reviews need a cluster",
    };
  }

  /** Writes in memory only: files belong to the user. The version that the write is based on must be the current one. */
  commit(commit: Commit): { readonly result: CommitResult; readonly changes: readonly Change[] } {
    const { resource, namespace = "", name } = commit;
    const known = this.#tables.get(resource)?.get(objectKey(namespace, name));
    const current = known === undefined ? undefined : String(known.version);
    if (current !== commit.resourceVersion) return { result: "conflict", changes: [] };
    const slot = this.#slot(resource, namespace, name);
    const metadata = at(commit.object, "metadata");
    const object: JsonObject = {
      ...commit.object,
      metadata: { ...(isObject(metadata) ? metadata : {}), name, ...(namespace === "" ? {} : { namespace }) },
    };
    slot.written = object;
    slot.version = ++this.#version;
    return { result: "done", changes: [{ resource, namespace, name, object }] };
  }

  /**
   * Whether the cluster has an API group. Every cluster has Kubernetes' own and usher's; others are present if the
   * source has an APIService, a CustomResourceDefinition, or an object of the group.
   */
  #serves(group: string): boolean {
    if (!group.includes(".") || group.endsWith(".k8s.io") || this.#ownGroups.has(group)) return true;
    for (const [resource, table] of this.#tables) {
      if (table.size === 0) continue;
      if (groupOf(resource) === group) return true;
      if (!SERVING.has(resource)) continue;
      for (const slot of table.values())
        if (stringAt(currentOf(slot), "spec", "group") === group) return true;
    }
    return false;
  }

  /** A valid definition precedes an invalid one. */
  #inOrder(a: Entry, b: Entry): number {
    if ((a.invalid === undefined) !== (b.invalid === undefined)) return a.invalid === undefined ? -1 : 1;
    return (
      this.#rootOf(a) - this.#rootOf(b) ||
      compareText(a.place.file, b.place.file) ||
      a.place.ordinal - b.place.ordinal
    );
  }

  #rootOf({ place: { file } }: Entry): number {
    return this.#roots.findIndex((root) => file === root || file.startsWith(`${root}/`));
  }

  #list(list: Extract<Need, { readonly list: unknown }>["list"], limit: number): Fact {
    const selector = parseSelectorText(list.labelSelector ?? "");
    if ("problem" in selector) return { failed: selector.problem };
    const found: Slot[] = [];
    for (const slot of this.#tables.get(list.resource)?.values() ?? []) {
      if (list.namespace !== undefined && slot.namespace !== list.namespace) continue;
      const object = currentOf(slot);
      if (object !== undefined && selector.matches(labelsOf(object))) found.push(slot);
    }
    // In the order of an API server, so that a limit always cuts off the same objects.
    found.sort((a, b) => compareText(a.namespace, b.namespace) || compareText(a.name, b.name));
    // Nothing changes while a list is read here, so the continue token is just an offset.
    const from = Number(list.continue ?? 0);
    const end = from + limit;
    const kept = found.slice(from, end).map((slot) => withVersion(slot) ?? {});
    const more = found.length > end;
    return { found: kept, complete: !more, ...(more ? { next: String(end) } : {}) };
  }

  #slot(resource: string, namespace: string, name: string): Slot {
    let table = this.#tables.get(resource);
    if (table === undefined) {
      table = new Map();
      this.#tables.set(resource, table);
    }
    const key = objectKey(namespace, name);
    let slot = table.get(key);
    if (slot === undefined) {
      slot = { resource, namespace, name, definitions: [], written: undefined, version: 0 };
      table.set(key, slot);
    }
    return slot;
  }
}

/** Objects that declare which groups a cluster serves. */
const SERVING: ReadonlySet<string> = new Set([
  "apiservices.apiregistration.k8s.io",
  "customresourcedefinitions.apiextensions.k8s.io",
]);

/** `user.openshift.io` of `users.user.openshift.io`; the core group is empty. */
function groupOf(resource: string): string {
  const dot = resource.indexOf(".");
  return dot < 0 ? "" : resource.slice(dot + 1);
}

function currentOf(slot: Slot): JsonObject | undefined {
  return slot.written ?? slot.definitions[0]?.object;
}

function withVersion(slot: Slot): JsonObject | undefined {
  const object = currentOf(slot);
  if (object === undefined) return undefined;
  const metadata = at(object, "metadata");
  return {
    ...object,
    metadata: { ...(isObject(metadata) ? metadata : {}), resourceVersion: String(slot.version) },
  };
}
