import type { Draft } from "./draft.ts";
import { type ModuleFinding, policyKey } from "./finding.ts";
import { at, canonical, equal, isObject, type Json, type JsonObject, setOwn, stringAt } from "./json.ts";
import { controllerOf } from "./kubernetes/object.ts";
import { type Path, pointer, steps } from "./path.ts";

/** The one annotation, on the top object, that says which policy put what there. */
export const PROVENANCE = "usher.dev/provenance";

/**
 * An object whose annotations exceed 262,144 bytes together is refused by the API server, even where our hook is open
 * (TotalAnnotationSizeLimitB). Above this the explanation is left out rather than the object.
 */
export const ANNOTATIONS_LIMIT = 262_144;

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
    if (!Array.isArray(entries) || !/^[a-z][a-z-]*$/.test(module)) continue;
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
        ...(typeof generation === "number" ? { generation } : {}),
        set: Array.isArray(set) ? set.filter((item): item is string => typeof item === "string") : [],
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
  for (const origin of stored) book.keep(origin, (path) => stillCarries(draft.object, old, path));
  book.keepConfirmed(claimed, findings);
  for (const edit of draft.edits) {
    if (edit.finding?.policy === undefined || edit.kind === "remove") continue;
    if (edit.kind === "append") book.add(edit.finding, edit.path.slice(0, -1), edit.value ?? null);
    else book.set(edit.finding, edit.path);
  }
  const text = book.text();
  const path: Path = ["metadata", "annotations", PROVENANCE];
  const present = stringAt(draft.object, ...path);
  if (text === undefined) return present === undefined || draft.remove(path, undefined);
  if (text === present) return true;
  if (annotationBytes(draft.object) + PROVENANCE.length + Buffer.byteLength(text) > ANNOTATIONS_LIMIT)
    return false;
  return draft.set(path, text, undefined);
}

class Book {
  readonly #origins = new Map<
    string,
    { origin: Origin; set: Set<string>; added: Map<string, Map<string, Json>> }
  >();

  set(finding: ModuleFinding, path: Path): void {
    this.#of(finding)?.set.add(pointer(path));
  }

  add(finding: ModuleFinding, list: Path, value: Json): void {
    const added = this.#of(finding)?.added;
    const where = pointer(list);
    const values = added?.get(where) ?? new Map<string, Json>();
    values.set(canonical(value), value);
    added?.set(where, values);
  }

  /** Takes over what is still true of a stored origin. */
  keep(origin: Origin, holds: (path: string) => boolean): void {
    const entry = this.#entry({ ...origin, set: [], added: {} });
    for (const path of origin.set) if (holds(path)) entry.set.add(path);
    for (const list of Object.keys(origin.added)) {
      if (!holds(list)) continue;
      const values = entry.added.get(list) ?? new Map<string, Json>();
      for (const value of origin.added[list] ?? []) values.set(canonical(value), value);
      entry.added.set(list, values);
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
      if (claim?.set.includes(where)) this.#of(finding)?.set.add(where);
    }
  }

  text(): string | undefined {
    const modules: Record<string, Json[]> = {};
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
      const list = modules[origin.module] ?? [];
      list.push(entry);
      modules[origin.module] = list;
    }
    return Object.keys(modules).length === 0 ? undefined : JSON.stringify(modules);
  }

  #of(finding: ModuleFinding) {
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

  #entry(origin: Origin) {
    const key = `${origin.module} ${origin.policy}`;
    const known = this.#origins.get(key);
    const entry = { origin, set: known?.set ?? new Set(), added: known?.added ?? new Map() };
    this.#origins.set(key, entry);
    return entry;
  }
}

function stillCarries(now: JsonObject, old: JsonObject | undefined, path: string): boolean {
  const keys = steps(path);
  const value = at(now, ...keys);
  return value !== undefined && equal(value, at(old, ...keys));
}

function listsOf(added: JsonObject): Record<string, readonly Json[]> {
  const lists: Record<string, readonly Json[]> = {};
  for (const key of Object.keys(added)) {
    const list = added[key];
    if (Array.isArray(list) && key !== "__proto__") lists[key] = list;
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
