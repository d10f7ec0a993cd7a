import type { Draft } from "./draft.ts";
import { type ModuleFinding, policyKey } from "./finding.ts";
import { at, canonical, equal, isObject, type Json, type JsonObject, setOwn, stringAt } from "./json.ts";
import { controllerOf } from "./kubernetes/object.ts";
import { atPointer, type Path, pointer } from "./path.ts";

/** The one annotation, on the top object, that says which policy put what there. */
export const PROVENANCE = "usher.dev/provenance";

/**
 * An object whose annotations exceed 262,144 bytes together is refused by the API server, even where our hook is open
 * (TotalAnnotationSizeLimitB). Above this the explanation is left out rather than the object.
 */
export const ANNOTATIONS_LIMIT = 262_144;

/**
 * No value that a policy adds to a list comes near this depth (a pod affinity term has 6). An annotation has room for 100,000
 * levels, and JSON.stringify gives up before 5,000.
 */
const DEPTH_LIMIT = 32;

/** What one policy put into an object. */
export interface Origin {
  readonly module: string;
  /** `ClusterPodSchedulingPolicy/etcd-pool` */
  readonly policy: string;
  readonly uid?: string;
  readonly generation?: number;
  /** Places that were set, as JSON pointers. */
  readonly set: readonly string[];
  /** List elements that were added, by the list's pointer. An index would not survive other people's edits. */
  readonly added: Readonly<Record<string, readonly Json[]>>;
}

/** Reads the annotation of an object; anything that is not ours or not readable is no provenance. */
export function provenanceOf(object: JsonObject | undefined): Origin[] {
  const text = stringAt(object, "metadata", "annotations", PROVENANCE);
  if (text === undefined) return [];
  let parsed: Json;
  try {
    parsed = JSON.parse(text);
  } catch {
    return [];
  }
  if (!isObject(parsed)) return [];
  const origins: Origin[] = [];
  for (const module of Object.keys(parsed)) {
    const entries = parsed[module];
    // Anyone can write an annotation: a name such as `__proto__` is none of our modules.
    if (!Array.isArray(entries) || !/^[a-z0-9](?:[-a-z0-9]*[a-z0-9])?$/.test(module)) continue;
    for (const entry of entries) {
      const policy = stringAt(entry, "policy");
      if (policy === undefined) continue;
      const uid = stringAt(entry, "uid");
      const generation = at(entry, "generation");
      const set = at(entry, "set");
      const added = at(entry, "added");
      origins.push({
        module,
        policy,
        ...(uid === undefined ? {} : { uid }),
        ...(Number.isSafeInteger(generation) ? { generation: Number(generation) } : {}),
        set: Array.isArray(set) ? set.filter(isPointer) : [],
        added: isObject(added) ? listsOf(added) : {},
      });
    }
  }
  return origins;
}

/**
 * Writes the annotation from the edits. On UPDATE what the stored object says of itself is kept as long as it is still true;
 * what the client sends is believed only where a policy says the same of itself in this very evaluation, because anyone can
 * write an annotation. True where the draft carries its provenance now, or needs none.
 */
export function writeProvenance(
  draft: Draft,
  findings: readonly ModuleFinding[],
  old: JsonObject | undefined,
): boolean {
  const stored = provenanceOf(old);
  const claimed = provenanceOf(draft.object);
  if (draft.edits.length === 0) {
    if (stored.length === 0 && claimed.length === 0) return true;
    // A controller copies its owner's annotations (a Deployment's onto its ReplicaSets) and would write again and again
    // what we took out or corrected.
    if (controllerOf(draft.object) !== undefined) return true;
  }
  const book = new Book();
  const kept = new Kept(draft.object, old);
  for (const origin of stored) book.keep(origin, kept);
  book.keepConfirmed(claimed, findings);
  for (const edit of draft.edits) {
    if (edit.finding?.policy === undefined || edit.kind === "remove") continue;
    // A later module may have taken it out again.
    if (draft.get(...edit.path) === undefined) continue;
    if (edit.kind === "append") book.add(edit.finding, edit.path.slice(0, -1), edit.value ?? null);
    else book.set(edit.finding, edit.path);
  }
  const text = book.text();
  const path: Path = ["metadata", "annotations", PROVENANCE];
  const present = stringAt(draft.object, ...path);
  if (text === undefined) return present === undefined || draft.remove(path, undefined);
  if (text === present) return true;
  if (annotationBytes(draft.object) + PROVENANCE.length + Buffer.byteLength(text) > ANNOTATIONS_LIMIT) {
    // Where the truth has no room, what the client wrote in its place must not pass for it.
    draft.remove(path, undefined);
    return false;
  }
  return draft.set(path, text, undefined);
}

/**
 * What an object still carries of what it carried when it was stored. Each place is looked at once, however often it is named:
 * an annotation can name one place ten thousand times.
 */
class Kept {
  readonly #now: JsonObject;
  readonly #old: JsonObject | undefined;
  readonly #places = new Map<string, boolean>();
  readonly #lists = new Map<string, ReadonlySet<string>>();

  constructor(now: JsonObject, old: JsonObject | undefined) {
    this.#now = now;
    this.#old = old;
  }

  has(place: string): boolean {
    let kept = this.#places.get(place);
    if (kept === undefined) {
      const value = atPointer(this.#now, place);
      kept = value !== undefined && equal(value, atPointer(this.#old, place));
      this.#places.set(place, kept);
    }
    return kept;
  }

  /** Whether a list still has an element, wherever in it: others may have added, removed and moved theirs. */
  hasElement(list: string, element: string): boolean {
    let kept = this.#lists.get(list);
    if (kept === undefined) {
      const old = elementsOf(atPointer(this.#old, list));
      kept = new Set([...elementsOf(atPointer(this.#now, list))].filter((one) => old.has(one)));
      this.#lists.set(list, kept);
    }
    return kept.has(element);
  }
}

/** The elements of a list in one spelling each; without those that are too deep to be anything that we keep a note of. */
function elementsOf(list: Json | undefined): Set<string> {
  const elements = new Set<string>();
  if (Array.isArray(list)) for (const one of list) if (within(one, DEPTH_LIMIT)) elements.add(canonical(one));
  return elements;
}

function within(value: Json | undefined, depth: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return depth > 0 && Object.values(value).every((inner) => within(inner, depth - 1));
}

interface Entry {
  readonly origin: Origin;
  readonly set: Set<string>;
  readonly added: Map<string, Map<string, Json>>;
}

class Book {
  readonly #origins = new Map<string, Entry>();
  /** Whose each place is that was set: of several who set one, the last, whose value is there. */
  readonly #setters = new Map<string, Set<string>>();

  set(finding: ModuleFinding, path: Path): void {
    const entry = this.#of(finding);
    if (entry !== undefined) this.#put(entry, pointer(path));
  }

  #put(entry: Entry, place: string): void {
    this.#setters.get(place)?.delete(place);
    this.#setters.set(place, entry.set.add(place));
  }

  add(finding: ModuleFinding, list: Path, value: Json): void {
    const added = this.#of(finding)?.added;
    const where = pointer(list);
    const values = added?.get(where) ?? new Map<string, Json>();
    values.set(canonical(value), value);
    added?.set(where, values);
  }

  /** Takes over what is still true of a stored origin. */
  keep(origin: Origin, kept: Kept): void {
    const entry = this.#entry({ ...origin, set: [], added: {} });
    for (const place of origin.set) if (kept.has(place)) this.#put(entry, place);
    for (const list of Object.keys(origin.added)) {
      const values = entry.added.get(list) ?? new Map<string, Json>();
      for (const value of origin.added[list] ?? []) {
        const element = canonical(value);
        if (kept.hasElement(list, element)) values.set(element, value);
      }
      if (values.size > 0) entry.added.set(list, values);
    }
  }

  /** A claim that came with the request counts only where the policy itself says "the object says so already". */
  keepConfirmed(claims: readonly Origin[], findings: readonly ModuleFinding[]): void {
    if (claims.length === 0) return;
    for (const finding of findings) {
      if (finding.outcome !== "same" || finding.policy === undefined || finding.path === undefined) continue;
      const where = pointer(finding.path);
      const policy = policyKey(finding.policy);
      const claim = claims.find((one) => one.module === finding.module && one.policy === policy);
      if (claim?.set.includes(where)) this.set(finding, finding.path);
    }
  }

  text(): string | undefined {
    // No plain object to look names up in: `constructor` is a name that an annotation may hold.
    const modules = new Map<string, Json[]>();
    const entries = [...this.#origins.entries()].sort(([a], [b]) => (a < b ? -1 : 1));
    for (const [, { origin, set, added }] of entries) {
      if (set.size === 0 && added.size === 0) continue;
      const lists: Record<string, Json> = {};
      for (const list of [...added.keys()].sort()) {
        const values = added.get(list) ?? new Map<string, Json>();
        setOwn(
          lists,
          list,
          [...values.keys()].sort().map((key) => values.get(key) ?? null),
        );
      }
      const entry: Record<string, Json> = { policy: origin.policy };
      if (origin.uid !== undefined) entry["uid"] = origin.uid;
      if (origin.generation !== undefined) entry["generation"] = origin.generation;
      if (set.size > 0) entry["set"] = [...set].sort();
      if (added.size > 0) entry["added"] = lists;
      const list = modules.get(origin.module) ?? [];
      list.push(entry);
      modules.set(origin.module, list);
    }
    return modules.size === 0 ? undefined : JSON.stringify(Object.fromEntries(modules));
  }

  #of(finding: ModuleFinding): Entry | undefined {
    if (finding.policy === undefined) return undefined;
    const { uid, generation } = finding.policy;
    return this.#entry({
      module: finding.module,
      policy: policyKey(finding.policy),
      ...(uid === undefined ? {} : { uid }),
      ...(generation === undefined ? {} : { generation }),
      set: [],
      added: {},
    });
  }

  #entry(origin: Origin): Entry {
    const key = `${origin.module} ${origin.policy}`;
    const known = this.#origins.get(key);
    const entry: Entry = { origin, set: known?.set ?? new Set(), added: known?.added ?? new Map() };
    this.#origins.set(key, entry);
    return entry;
  }
}

function isPointer(item: Json): item is string {
  return typeof item === "string" && item.startsWith("/");
}

function listsOf(added: JsonObject): Record<string, readonly Json[]> {
  const lists: Record<string, readonly Json[]> = {};
  for (const key of Object.keys(added)) {
    const list = added[key];
    if (Array.isArray(list) && isPointer(key)) lists[key] = list.filter((one) => within(one, DEPTH_LIMIT));
  }
  return lists;
}

function annotationBytes(object: JsonObject): number {
  const annotations = at(object, "metadata", "annotations");
  if (!isObject(annotations)) return 0;
  let bytes = 0;
  for (const key of Object.keys(annotations)) {
    if (key !== PROVENANCE) bytes += Buffer.byteLength(key) + Buffer.byteLength(String(annotations[key]));
  }
  return bytes;
}
